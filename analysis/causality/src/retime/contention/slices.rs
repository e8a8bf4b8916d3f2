//! Slices: the times during which threads had CPUs, and how they got them.

/// A time during which a thread had a CPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::retime) struct CpuSlice {
    pub machine: u32,
    pub cpu: u32,
    /// The time since which the thread needed a CPU.
    pub ready: i64,
    pub begin: i64,
    pub end: i64,
    /// The thread was preempted at the end.
    pub is_cut: bool,
    /// The thread needed a CPU because it was preempted, not because it was woken.
    pub follows_cut: bool,
    /// The next slice of its thread, or this one if it is the last.
    pub next: u32,
    /// The time of its entry into the queue: until it was granted a CPU, none was idle.
    pub queued: i64,
    /// The time at which it was granted its CPU. The switch follows, until `begin`.
    pub granted: i64,
    /// The number of threads in the queue at its entry.
    pub among: u32,
    /// The number of those that got a CPU before it.
    pub rank: u32,
}

impl CpuSlice {
    /// The delay before its entry into the queue.
    pub fn late(&self) -> i64 {
        self.queued - self.ready
    }

    pub fn switch(&self) -> i64 {
        self.begin - self.granted
    }

    pub fn length(&self) -> i64 {
        self.end - self.begin
    }

    /// Whether it waited for a CPU.
    pub fn waited(&self) -> bool {
        self.granted > self.queued
    }
}

/// All slices, and examples of their properties.
#[derive(Debug, Default)]
pub(in crate::retime) struct Slices {
    pub all: Vec<CpuSlice>,
    pub machines: Vec<Machine>,
}

/// CPUs that threads share, and the numbers of its slices, in the order of time, by the property of which they
/// are examples.
#[derive(Debug, Default)]
pub(in crate::retime) struct Machine {
    pub cpus: usize,
    /// Preempted slices whose thread had another one later.
    pub cut: Vec<u32>,
    /// Slices of woken threads.
    pub woken: Vec<u32>,
    /// Slices that found others in the queue: after a wake, and after a preemption.
    pub ranked: [Vec<u32>; 2],
    /// Slices that did not wait for a CPU, and slices that did.
    pub switched: [Vec<u32>; 2],
}

impl Slices {
    /// Completes the slices that the kernel recorded.
    pub fn new(mut all: Vec<CpuSlice>, machines: u32) -> Slices {
        let mut machines: Vec<Machine> = (0..machines).map(|_| Machine::default()).collect();
        let mut order: Vec<u32> = (0..all.len() as u32).collect();
        order.sort_unstable_by_key(|&number| (all[number as usize].begin, number));
        let mut of_machines = vec![Vec::new(); machines.len()];
        for number in order {
            of_machines[all[number as usize].machine as usize].push(number);
        }
        for (machine, own) in machines.iter_mut().zip(of_machines) {
            machine.cpus = grant(&mut all, &own);
            let busy = busy(&all, &own, machine.cpus);
            enqueue(&mut all, &own, &busy);
            set_ranks(&mut all, &own);
            machine.learn(&all, &own);
        }
        Slices { all, machines }
    }

    pub fn of(&self, number: u32) -> &CpuSlice {
        &self.all[number as usize]
    }
}

impl Machine {
    fn learn(&mut self, all: &[CpuSlice], own: &[u32]) {
        for &number in own {
            let slice = &all[number as usize];
            if slice.is_cut && slice.next != number && slice.length() > 0 {
                self.cut.push(number);
            }
            if !slice.follows_cut {
                self.woken.push(number);
            }
            if slice.among > 0 {
                self.ranked[usize::from(slice.follows_cut)].push(number);
            }
            self.switched[usize::from(slice.waited())].push(number);
        }
    }
}

/// Sets the times of the grants: a slice gets its CPU once it is ready and the previous slice on that CPU is
/// over. Returns the number of CPUs.
fn grant(all: &mut [CpuSlice], own: &[u32]) -> usize {
    let mut ends: std::collections::HashMap<u32, i64> = std::collections::HashMap::new();
    for &number in own {
        let slice = &mut all[number as usize];
        let end = ends.entry(slice.cpu).or_insert(i64::MIN);
        slice.ready = slice.ready.min(slice.begin);
        slice.granted = slice.ready.max(*end).min(slice.begin);
        *end = slice.end.max(*end);
    }
    ends.len()
}

/// The times in which no CPU was idle.
fn busy(all: &[CpuSlice], own: &[u32], cpus: usize) -> Vec<(i64, i64)> {
    let of = |number: &u32| &all[*number as usize];
    let mut changes: Vec<(i64, i64)> =
        own.iter().map(of).flat_map(|slice| [(slice.granted, 1), (slice.end, -1)]).collect();
    changes.sort_unstable();
    let (mut taken, mut since, mut busy) = (0, None, Vec::new());
    for at_once in changes.chunk_by(|one, other| one.0 == other.0) {
        taken += at_once.iter().map(|change| change.1).sum::<i64>();
        match since {
            None if taken >= cpus as i64 => since = Some(at_once[0].0),
            Some(begin) if taken < cpus as i64 => {
                busy.push((begin, at_once[0].0));
                since = None;
            }
            _ => {}
        }
    }
    busy
}

/// Sets the times of entry into the queue.
fn enqueue(all: &mut [CpuSlice], own: &[u32], busy: &[(i64, i64)]) {
    for &number in own {
        let slice = &mut all[number as usize];
        let at = busy.partition_point(|time| time.1 < slice.granted);
        let since = busy.get(at).filter(|time| time.0 < slice.granted).map(|time| time.0);
        slice.queued = slice.ready.max(since.unwrap_or(slice.granted));
    }
}

/// Sets the numbers of threads in the queue at each entry, and of those that got a CPU before it.
fn set_ranks(all: &mut [CpuSlice], own: &[u32]) {
    let mut granted = own.to_vec();
    granted.sort_unstable_by_key(|&number| (all[number as usize].granted, number));
    let mut grant_ranks = std::collections::HashMap::with_capacity(own.len());
    grant_ranks.extend(granted.iter().enumerate().map(|(rank, &number)| (number, rank)));
    let mut order = own.to_vec();
    order.sort_unstable_by_key(|&number| (all[number as usize].queued, number));
    let queued: Vec<(i64, u32)> =
        order.into_iter().map(|number| (all[number as usize].queued, number)).collect();
    let mut waiting = Ranks::new(own.len());
    let mut gone = 0;
    for at_once in queued.chunk_by(|one, other| one.0 == other.0) {
        let now = at_once[0].0;
        while granted.get(gone).is_some_and(|&number| all[number as usize].granted < now) {
            waiting.remove(gone);
            gone += 1;
        }
        at_once.iter().for_each(|(_, number)| waiting.insert(grant_ranks[number]));
        for (_, number) in at_once {
            let slice = &mut all[*number as usize];
            (slice.among, slice.rank) = (waiting.len() - 1, waiting.below(grant_ranks[number]));
        }
    }
}

/// A set of ranks that counts those below a rank (Fenwick 1994).
struct Ranks {
    sums: Vec<i32>,
    is_in: Vec<bool>,
    len: u32,
}

impl Ranks {
    fn new(count: usize) -> Ranks {
        Ranks { sums: vec![0; count + 1], is_in: vec![false; count], len: 0 }
    }

    fn len(&self) -> u32 {
        self.len
    }

    fn insert(&mut self, rank: usize) {
        if !std::mem::replace(&mut self.is_in[rank], true) {
            self.len += 1;
            self.add(rank, 1);
        }
    }

    fn remove(&mut self, rank: usize) {
        if std::mem::take(&mut self.is_in[rank]) {
            self.len -= 1;
            self.add(rank, -1);
        }
    }

    fn add(&mut self, rank: usize, change: i32) {
        let mut at = rank + 1;
        while let Some(sum) = self.sums.get_mut(at) {
            *sum += change;
            at += at & at.wrapping_neg();
        }
    }

    fn below(&self, rank: usize) -> u32 {
        let (mut at, mut sum) = (rank, 0);
        while at > 0 {
            sum += self.sums[at];
            at &= at - 1;
        }
        sum as u32
    }
}
