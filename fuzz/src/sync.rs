//! `.sync` files: readings of clocks, which another host may have sent.

use ppt_clock::sync::{ClockReadings, HEADER, Record};
use ppt_clock::times::{ClockModel, Times};

/// A file is refused, or is readings, which are judged; what a line says reads back.
pub(crate) fn sync(input: &[u8]) {
    let mut readings = ClockReadings::default();
    let _ = readings.read(input);
    let whole = [HEADER.as_bytes(), b"\n", input, b"\n"].concat();
    let _ = readings.read(&whole);
    let believes = ClockModel { trusts_reports: true, ..ClockModel::default() };
    let _ = Times::of_truth(&readings, &believes);
    for reference in 0..readings.hosts().len().min(3) {
        let times = Times::between_hosts(&readings, reference, &ClockModel::default()).unwrap();
        for host in 0..readings.hosts().len() {
            let ticks = times.parts(host).flatten().map(|part| part.tick).take(100);
            let ticks: Vec<_> =
                ticks.flat_map(|tick| [tick, tick + 1]).chain([0, u64::MAX]).collect();
            for tick in ticks {
                let found = times.at(host, tick);
                assert!(found.is_none_or(|it| it.lo <= it.mid && it.mid <= it.hi));
            }
        }
    }
    for line in input.split(|&byte| byte == b'\n') {
        if let Ok(Some(record)) = Record::parse(line) {
            let again = Record::parse(record.to_string().as_bytes());
            assert_eq!(again, Ok(Some(record)));
        }
    }
}
