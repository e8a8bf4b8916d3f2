//! The processes of a set: their numbers come again, over time, hosts and containers.

use std::collections::HashMap;

use crate::set::CaptureSet;

/// A process.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ProcessRow {
    /// The name of its host.
    pub host: String,
    /// The boot of its host; of a capture whose header is damaged, the capture.
    pub boot: String,
    /// Its number, in the listener's namespace.
    pub pid: u32,
    /// When it was started, in clock ticks since the boot.
    pub start: u64,
    /// Its program, as it says.
    pub exe: String,
}

/// The processes of a set, and which rows are whose.
#[derive(Debug, Clone, Default)]
pub struct Processes {
    all: Vec<ProcessRow>,
    /// By process: its machine.
    machines: Vec<usize>,
    /// How many machines there are.
    machine_count: usize,
    /// By capture and segment.
    of_segments: HashMap<(String, String), usize>,
    /// By capture and number: the last one, where a number came again.
    of_numbers: HashMap<(String, u32), usize>,
    /// The last name of each thread, by process and thread.
    names: HashMap<(usize, u32), String>,
}

impl Processes {
    /// Those of `set`.
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
                    processes.of_segments.insert((capture.id.clone(), segment), number);
                }
                processes.of_numbers.insert((capture.id.clone(), process.pid), number);
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

    /// The number of the process of a row with these columns; one that is [nobody's](Self::get) where
    /// there is none.
    pub fn find(&self, capture: &str, segment: Option<&str>, pid: Option<i32>) -> usize {
        let by_segment = segment
            .and_then(|segment| self.of_segments.get(&(capture.to_owned(), segment.to_owned())));
        let by_number = || {
            let pid = u32::try_from(pid?).ok()?;
            self.of_numbers.get(&(capture.to_owned(), pid))
        };
        by_segment.or_else(by_number).copied().unwrap_or(usize::MAX)
    }

    /// The process of that number; one without a name for any other number.
    pub fn get(&self, number: usize) -> &ProcessRow {
        static NOBODY: ProcessRow = ProcessRow {
            host: String::new(),
            boot: String::new(),
            pid: 0,
            start: 0,
            exe: String::new(),
        };
        self.all.get(number).unwrap_or(&NOBODY)
    }

    /// The last name of a thread of the process of that number, if it has one.
    pub fn thread_name(&self, number: usize, tid: i32) -> Option<&str> {
        let name = self.names.get(&(number, u32::try_from(tid).ok()?))?;
        Some(name.as_str()).filter(|name| !name.is_empty())
    }

    /// Whether they are of more than one host.
    pub fn are_of_several_hosts(&self) -> bool {
        self.all.windows(2).any(|window| window[0].host != window[1].host)
    }

    /// The number of the machine of a process: a boot of a host. That of nobody is 0.
    pub fn machine(&self, number: usize) -> usize {
        self.machines.get(number).copied().unwrap_or(0)
    }

    /// How many machines there are: their numbers are less.
    pub fn machine_count(&self) -> usize {
        self.machine_count
    }

    /// Whether no process of the same machine with a smaller number has its pid.
    pub fn is_first_of_its_pid_there(&self, number: usize) -> bool {
        let (pid, machine) = (self.get(number).pid, self.machine(number));
        let mut before = self.all.iter().zip(&self.machines).take(number);
        before.all(|(other, &of)| (other.pid, of) != (pid, machine))
    }

    /// Whether no process with a smaller number has its pid: those of other hosts, and those that came
    /// later, need other names where a pid is one.
    pub fn is_first_of_its_pid(&self, number: usize) -> bool {
        let pid = self.get(number).pid;
        self.all.iter().take(number).all(|row| row.pid != pid)
    }
}
