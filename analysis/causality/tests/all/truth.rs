//! Generators of runs with known causes: requests that pass through a graph of stages in several processes,
//! and queues of equal things.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use ppt_causality::{Entry, Policy, Rule, Side, Vertex};

/// Deterministic pseudorandom numbers.
pub struct SplitMix(pub u64);

impl SplitMix {
    /// Any number.
    pub fn any(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let number = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        number ^ (number >> 31)
    }

    /// A number below `count`.
    pub fn below(&mut self, count: u64) -> u64 {
        ((u128::from(self.any()) * u128::from(count)) >> 64) as u64
    }
}

/// The parameters of a run.
#[derive(Debug, Clone, Copy)]
pub struct TruthPlan {
    pub seed: u64,
    pub requests: u64,
    /// The number of points; requests begin at the first and end at the last.
    pub stages: u32,
    /// The number of requests after which values repeat.
    pub period: Option<u64>,
    /// All points have one hash type, and values leave as they entered; otherwise, each point translates them.
    pub one_type: bool,
    /// One in this many frames is missing; 0: none.
    pub loss: u64,
}

/// A generated run and its true causes. A frame's name is its index in `vertices`.
#[derive(Debug)]
pub struct Truth {
    /// Hash type, value and entry, in the order in which a matcher gets them.
    pub entries: Vec<(u32, u64, Entry<u32>)>,
    pub vertices: Vec<Vertex>,
    /// The process of each thread.
    pub processes: Vec<u32>,
    /// For each hash type, its points and rules.
    pub types: Vec<(Vec<u32>, Vec<Rule>)>,
    /// Pairs of cause and effect, in the order of the effects, then of the causes.
    pub edges: Vec<(u32, u32)>,
    /// The number of ins whose cause is missing.
    pub orphans: usize,
    /// Point and time of each missing frame.
    pub lost: Vec<(u32, i64)>,
    /// The request of each vertex.
    pub requests: Vec<u64>,
}

const THREADS: u64 = 2;
const PROCESSES: u64 = 3;

/// The one or two stages before each stage. Each stage comes before five others at most.
fn stages(count: u32, dice: &mut SplitMix) -> Vec<Vec<usize>> {
    let mut behind = vec![0; count as usize];
    let mut before = vec![Vec::new()];
    for stage in 1..count as u64 {
        let mut these: Vec<usize> = Vec::new();
        for _ in 0..=dice.below(2) {
            let one = dice.below(stage) as usize;
            if !these.contains(&one) && behind[one] < 5 {
                behind[one] += 1;
                these.push(one);
            }
        }
        if these.is_empty() {
            these.push(stage as usize - 1);
        }
        before.push(these);
    }
    before
}

impl Truth {
    pub fn new(plan: TruthPlan) -> Truth {
        let mut dice = SplitMix(plan.seed);
        let before = stages(plan.stages, &mut dice);
        // Frames as they happen: time, thread, request, stage.
        let mut frames: Vec<(i64, u64, u64, u32)> = Vec::new();
        let mut ready: BinaryHeap<Reverse<(i64, u64, u32)>> = BinaryHeap::new();
        let mut begun = 0;
        let mut waiting = VecDeque::new();
        let mut first = 0;
        let mut last = vec![0; (THREADS * PROCESSES) as usize];
        let mut next = 0;
        loop {
            if begun < plan.requests && ready.peek().is_none_or(|Reverse((at, ..))| *at >= next) {
                ready.push(Reverse((next, begun, 0)));
                waiting.push_back((0, vec![(0, 0); plan.stages as usize]));
                begun += 1;
                next += dice.below(2000) as i64;
            }
            let Some(Reverse((arrival, request, stage))) = ready.pop() else { break };
            let thread = u64::from(stage) % PROCESSES * THREADS + dice.below(THREADS);
            let at = (last[thread as usize] + 1).max(arrival);
            last[thread as usize] = at;
            frames.push((at, thread, request, stage));
            let (done, all): &mut (u32, Vec<(usize, i64)>) =
                &mut waiting[(request - first) as usize];
            *done += 1;
            for (other, sources) in before.iter().enumerate() {
                if sources.contains(&(stage as usize)) {
                    let (come, latest) = &mut all[other];
                    *come += 1;
                    *latest = (*latest).max(at + 1 + dice.below(1000) as i64);
                    if *come == sources.len() {
                        ready.push(Reverse((*latest, request, other as u32)));
                    }
                }
            }
            while waiting.front().is_some_and(|(done, _)| *done == plan.stages) {
                waiting.pop_front();
                first += 1;
            }
        }
        frames.sort_unstable();
        Truth::of(plan, &before, &frames, &mut dice)
    }

    fn of(
        plan: TruthPlan,
        before: &[Vec<usize>],
        frames: &[(i64, u64, u64, u32)],
        dice: &mut SplitMix,
    ) -> Truth {
        let is_lost: Vec<bool> =
            frames.iter().map(|_| plan.loss > 0 && dice.below(plan.loss) == 0).collect();
        let type_of = |stage: usize| if plan.one_type { 0 } else { stage as u32 };
        let value = |request: u64, stage: usize| match plan.period {
            Some(period) => request % period,
            None if plan.one_type => request,
            None => SplitMix((request << 8) | stage as u64).any(),
        };
        let points: Vec<u32> = (0..plan.stages).collect();
        let rule = |from: usize, to: usize| {
            let policy = if plan.period.is_some() { Policy::Nearest } else { Policy::All };
            Rule { from: from as u32, to: to as u32, within: None, policy }
        };
        let rules_of = |ty: u32| -> Vec<Rule> {
            let all = before.iter().enumerate();
            let all = all.flat_map(|(to, from)| from.iter().map(move |&from| (from, to)));
            let all = all.filter(|&(from, _)| type_of(from) == ty);
            all.map(|(from, to)| rule(from, to)).collect()
        };
        let named = plan.one_type || plan.period.is_some();
        let types = if plan.one_type { 1 } else { plan.stages };
        let of_type = |ty: u32| {
            let rules = rules_of(ty);
            let has = |&number: &u32| {
                plan.one_type || number == ty || rules.iter().any(|rule| rule.to == number)
            };
            let points = points.iter().copied().filter(has).collect();
            (points, if named { rules } else { Vec::new() })
        };
        let mut truth = Truth {
            entries: Vec::new(),
            vertices: Vec::new(),
            processes: (0..THREADS * PROCESSES).map(|number| (number / THREADS) as u32).collect(),
            types: (0..types).map(of_type).collect(),
            edges: Vec::new(),
            orphans: 0,
            lost: Vec::new(),
            requests: Vec::new(),
        };
        let mut cut = [false; (THREADS * PROCESSES) as usize];
        let mut numbers = vec![None; plan.requests as usize * plan.stages as usize];
        for (index, &(ts, thread, request, stage)) in frames.iter().enumerate() {
            let at = |stage: usize| request as usize * plan.stages as usize + stage;
            if is_lost[index] {
                truth.lost.push((stage, ts));
                cut[thread as usize] = true;
                continue;
            }
            let vertex = truth.vertices.len() as u32;
            let (lo, hi, seqno, stated) = (ts, ts, index as u64, !plan.one_type);
            let entry = |side, stated| {
                let (point, frame) = (stage, vertex);
                Entry { point, side, stated, lo, ts, hi, clock: 0, thread, seqno, frame }
            };
            let sources = &before[stage as usize];
            let mut causes: Vec<u32> =
                sources.iter().filter_map(|&source| numbers[at(source)]).collect();
            let orphans = sources.len() - causes.len();
            truth.orphans += orphans;
            causes.sort_unstable();
            truth.edges.extend(causes.iter().map(|&cause| (cause, vertex)));
            let ins: &[usize] = if plan.one_type { &[0] } else { sources };
            for &n in ins {
                truth.entries.push((type_of(n), value(request, n), entry(Side::In, true)));
            }
            let out = (type_of(stage as usize), value(request, stage as usize));
            truth.entries.push((out.0, out.1, entry(Side::Out, stated)));
            let cut = std::mem::take(&mut cut[thread as usize]) || orphans > 0;
            let thread = thread as u32;
            truth.vertices.push(Vertex { point: stage, thread, lo, ts, hi, cut });
            truth.requests.push(request);
            numbers[at(stage as usize)] = Some(vertex);
        }
        truth.entries.sort_by_key(|(ty, value, entry)| (*ty, *value, entry.order()));
        truth
    }

    /// Whether a frame of a point is missing between two times.
    pub fn missing(&self, point: u32, from: i64, to: i64) -> bool {
        let start = self.lost.partition_point(|entry| entry.1 < from);
        self.lost[start..].iter().take_while(|entry| entry.1 <= to).any(|entry| entry.0 == point)
    }

    /// The path to a vertex from the first stage of its request, by the latest causes, in reverse order.
    pub fn way(&self, vertex: u32) -> Option<Vec<u32>> {
        if self.vertices[vertex as usize].point == 0 {
            return Some(vec![vertex]);
        }
        let start = self.edges.partition_point(|edge| edge.1 < vertex);
        let causes = self.edges[start..].iter().take_while(|edge| edge.1 == vertex);
        let mut ways: Vec<_> = causes.filter_map(|cause| self.way(cause.0)).collect();
        let mut way = ways.pop()?;
        way.insert(0, vertex);
        Some(way)
    }
}

/// A generated queue of equal things.
pub struct Queued {
    /// In the order in which a matcher gets them. The frame that puts a thing in has its number, the frame that
    /// takes it out the number + 1 << 31.
    pub entries: Vec<Entry<u32>>,
    pub lost: Vec<(u32, i64)>,
}

/// A queue into which point 0 puts `count` things, in bursts. Point 1 takes them out in their order, none later
/// than `within`. At one in `loss` frames, a gap of up to `burst` frames of its point begins.
pub fn queue(seed: u64, count: u32, within: i64, (loss, burst): (u64, u64)) -> Queued {
    let mut dice = SplitMix(seed);
    let mut gone = [0; 2];
    let (mut put, mut taken) = (0i64, 0i64);
    let (mut entries, mut lost) = (Vec::new(), Vec::new());
    for thing in 0..count {
        // Sometimes there is a long pause.
        put += if dice.below(20) == 0 { 3 * within } else { 1 + dice.below(10) as i64 };
        taken = (taken + 1).max(put + 1 + dice.below(within as u64 / 2) as i64).min(put + within);
        for (point, side, at) in [(0, Side::Out, put), (1, Side::In, taken)] {
            let gone = &mut gone[point as usize];
            if *gone == 0 && loss > 0 && dice.below(loss) == 0 {
                *gone = 1 + dice.below(burst);
            }
            if *gone > 0 {
                *gone -= 1;
                lost.push((point, at));
                continue;
            }
            let (thread, seqno, frame) = (point.into(), thing.into(), thing | point << 31);
            let (lo, ts, hi, stated) = (at, at, at, true);
            entries.push(Entry { point, side, stated, lo, ts, hi, clock: 0, thread, seqno, frame });
        }
    }
    entries.sort_by_key(Entry::order);
    Queued { entries, lost }
}
