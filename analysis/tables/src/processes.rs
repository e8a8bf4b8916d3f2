//! The processes of a set. Pids alone do not identify them: they repeat over time, hosts and containers.

use std::collections::HashMap;

use crate::set::CaptureSet;

/// A process.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ProcessRow {
    /// The name of its host.
    pub host: String,
    /// The boot id of its host; the id of the capture if its header is damaged.
    pub boot: String,
    /// The pid, in the listener's namespace.
    pub pid: u32,
    /// Start time, in clock ticks since the boot.
    pub start: u64,
    /// Path of its program.
    pub exe: String,
}

/// The processes of a set, and the processes of rows.
#[derive(Debug, Clone, Default)]
pub struct Processes {
    all: Vec<ProcessRow>,
    /// By process: number of its machine.
    machines: Vec<usize>,
    machine_count: usize,
    /// By capture and segment.
    by_segment: HashMap<(String, String), usize>,
    /// By capture and pid; the last process if the pid was reused.
    by_pid: HashMap<(String, u32), usize>,
    /// The last name of each thread, by process and thread.
    names: HashMap<(usize, u32), String>,
}

impl Processes {
    /// The processes of `set`.
    pub fn new(set: &CaptureSet) -> Processes {
        let mut processes = Processes::default();
        let (mut known, mut machines) = (HashMap::new(), HashMap::new());
        for capture in set.captures() {
            let catalog = capture.catalog();
            let mut numbers = HashMap::new();
            for info in &catalog.sources {
                let process = &info.source.process;
                let header = catalog.header.as_ref();
                let found = ProcessRow {
                    host: catalog.host().to_owned(),
                    boot: header.map_or(&capture.id, |header| &header.boot_id).clone(),
                    pid: process.pid,
                    start: process.start_time,
                    exe: process.exe.clone(),
                };
                let key = (found.host.clone(), found.boot.clone(), found.pid, found.start);
                let next = machines.len();
                let machine =
                    *machines.entry((found.host.clone(), found.boot.clone())).or_insert(next);
                let number = *known.entry(key).or_insert_with(|| {
                    processes.machines.push(machine);
                    processes.all.push(found);
                    processes.all.len() - 1
                });
                for segment in &info.source.segments {
                    let segment = format!("{:016x}", segment.nonce);
                    processes.by_segment.insert((capture.id.clone(), segment), number);
                }
                processes.by_pid.insert((capture.id.clone(), process.pid), number);
                numbers.insert(process.key(), number);
            }
            for (process, names) in catalog.threads.iter() {
                if let (Some(&number), Some(last)) = (numbers.get(&process), names.last()) {
                    processes.names.insert((number, last.tid), last.text().into_owned());
                }
            }
        }
        processes.machine_count = machines.len();
        processes
    }

    /// The number of the process of a row with these columns; `usize::MAX` if the process is unknown, see
    /// [`Self::get`].
    pub fn find(&self, capture: &str, segment: Option<&str>, pid: Option<i32>) -> usize {
        let by_segment = segment
            .and_then(|segment| self.by_segment.get(&(capture.to_owned(), segment.to_owned())));
        let by_pid = || {
            let pid = u32::try_from(pid?).ok()?;
            self.by_pid.get(&(capture.to_owned(), pid))
        };
        by_segment.or_else(by_pid).copied().unwrap_or(usize::MAX)
    }

    /// The process with this number; a process with empty names if there is none.
    pub fn get(&self, number: usize) -> &ProcessRow {
        static UNKNOWN: ProcessRow = ProcessRow {
            host: String::new(),
            boot: String::new(),
            pid: 0,
            start: 0,
            exe: String::new(),
        };
        self.all.get(number).unwrap_or(&UNKNOWN)
    }

    /// The last name of a thread of the process with this number, if it has one.
    pub fn thread_name(&self, number: usize, tid: i32) -> Option<&str> {
        let name = self.names.get(&(number, u32::try_from(tid).ok()?))?;
        Some(name.as_str()).filter(|name| !name.is_empty())
    }

    /// Whether there are processes of more than one host.
    pub fn are_of_several_hosts(&self) -> bool {
        self.all.windows(2).any(|window| window[0].host != window[1].host)
    }

    /// The number of a process's machine: a boot of a host; 0 if the process is unknown.
    pub fn machine(&self, number: usize) -> usize {
        self.machines.get(number).copied().unwrap_or(0)
    }

    /// The number of machines; numbers of machines are below it.
    pub fn machine_count(&self) -> usize {
        self.machine_count
    }

    /// Whether no process of the same machine with a smaller number has its pid.
    pub fn is_first_of_its_pid_there(&self, number: usize) -> bool {
        let (pid, machine) = (self.get(number).pid, self.machine(number));
        let mut before = self.all.iter().zip(&self.machines).take(number);
        before.all(|(other, &of)| (other.pid, of) != (pid, machine))
    }

    /// Whether no process with a smaller number has its pid. Where pids are names, other processes with
    /// the pid need other names.
    pub fn is_first_of_its_pid(&self, number: usize) -> bool {
        let pid = self.get(number).pid;
        self.all.iter().take(number).all(|row| row.pid != pid)
    }
}
