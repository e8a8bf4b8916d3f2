//! Stored indexes: valid blocks are used, and others are built again.

mod nested;

use std::collections::{BTreeSet, HashMap};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use nested::{Dice, Shape, captures};
use ppt_view::{BuildCost, INDEX_VERSION, Phase, RowId, View, ViewError, WindowRequest};

const SHAPE: Shape = Shape {
    seed: 5,
    slices: 4000,
    threads: 2,
    chunk: 300,
    buffers: 2,
    overlap: true,
    others: true,
    captures: 1,
};

struct KeptIndex {
    folder: tempfile::TempDir,
    capture: PathBuf,
}

impl KeptIndex {
    fn new() -> KeptIndex {
        let folder = tempfile::tempdir().unwrap();
        let capture = folder.path().join("0.bin");
        fs::write(&capture, &captures(SHAPE)[0]).unwrap();
        KeptIndex { folder, capture }
    }

    fn cache(&self) -> PathBuf {
        self.folder.path().join("cache/view")
    }

    fn open(&self) -> View {
        View::open(std::slice::from_ref(&self.capture), Some(&self.cache()), 1 << 24).unwrap()
    }

    fn index(&self) -> PathBuf {
        let id = &self.open().about().captures[0].id;
        self.cache().join(format!("{id}.{INDEX_VERSION}"))
    }
}

fn build(view: &View) -> BuildCost {
    view.build(2, &|_| {}, &AtomicBool::new(false)).unwrap()
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[test]
fn a_kept_index_is_not_built_again() {
    let kept = KeptIndex::new();
    let first = kept.open();
    let cost = build(&first);
    assert_eq!(cost.kept, 0);
    assert!(cost.built > 20, "{cost:?}");
    first.save().unwrap();
    assert_eq!((mode(&kept.cache()), mode(&kept.index())), (0o700, 0o600));
    let second = kept.open();
    let again = build(&second);
    // The chunks of two buffers of a thread overlap in time, so depths depend on both.
    assert_eq!((again.built, again.kept), (0, cost.built), "{again:?}");
    assert_eq!(first.index_bytes(0), second.index_bytes(0));
    assert_eq!(fs::read(kept.index()).unwrap(), first.index_bytes(0));
}

#[test]
fn a_chunk_that_changed_costs_its_own_block() {
    let kept = KeptIndex::new();
    let first = kept.open();
    let cost = build(&first);
    first.save().unwrap();
    // Another capture with the same id. One frame has another time.
    let mut bytes = fs::read(&kept.capture).unwrap();
    change_a_frame(&mut bytes);
    fs::write(&kept.capture, &bytes).unwrap();
    let second = kept.open();
    let again = build(&second);
    assert!(again.built >= 1 && again.built <= 12, "{again:?} of {cost:?}");
    let alone = View::open(std::slice::from_ref(&kept.capture), None, 1 << 24).unwrap();
    build(&alone);
    assert_eq!(second.index_bytes(0), alone.index_bytes(0));
    assert_ne!(second.index_bytes(0), first.index_bytes(0));
}

/// Moves the first start of the last chunk of frames, and corrects its checksums.
fn change_a_frame(bytes: &mut [u8]) {
    const CHUNK: &[u8] = b"\x89ppt-ch1";
    let word = |bytes: &[u8], at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
    let starts: Vec<usize> =
        (0..bytes.len() - 64).step_by(64).filter(|&at| bytes[at..].starts_with(CHUNK)).collect();
    // Chunks of kind 2 have frames.
    let frames = |at: &&usize| u16::from_le_bytes(bytes[**at + 20..**at + 22].try_into().unwrap());
    let kinds: Vec<u16> = starts.iter().map(|at| frames(&at)).collect();
    let at = starts[kinds.iter().rposition(|&kind| kind == 2).unwrap()];
    let header = word(bytes, at + 16) as usize;
    let len = u64::from_le_bytes(bytes[at + 32..at + 40].try_into().unwrap()) as usize;
    let payload = at + header;
    bytes[payload + 16] ^= 1;
    let crc = crc32c::crc32c(&bytes[payload..payload + len]);
    bytes[at + 56..at + 60].copy_from_slice(&crc.to_le_bytes());
    bytes[at + 28..at + 32].fill(0);
    let crc = crc32c::crc32c(&bytes[at..at + header]);
    bytes[at + 28..at + 32].copy_from_slice(&crc.to_le_bytes());
}

#[test]
fn whatever_an_index_holds_answers_are_the_same() {
    let kept = KeptIndex::new();
    let view = kept.open();
    build(&view);
    view.save().unwrap();
    let (index, expected) = (kept.index(), view.index_bytes(0));
    let mut dice = Dice::new(9);
    for round in 0..60 {
        let mut bytes = expected.clone();
        match round % 3 {
            0 => bytes.truncate(dice.below(bytes.len() as u64) as usize),
            1 => {
                let at = dice.below(bytes.len() as u64) as usize;
                bytes[at] ^= 1 << dice.below(8);
            }
            _ => bytes.extend([0; 40]),
        }
        fs::write(&index, &bytes).unwrap();
        let again = kept.open();
        build(&again);
        assert_eq!(again.index_bytes(0), expected, "round {round}");
    }
}

#[test]
fn an_index_of_another_version_or_capture_does_not_count() {
    let kept = KeptIndex::new();
    let view = kept.open();
    let cost = build(&view);
    view.save().unwrap();
    let (index, expected) = (kept.index(), view.index_bytes(0));
    let id = expected.iter().position(|&byte| byte == view.about().captures[0].id.as_bytes()[0]);
    // The magic, the version, the id of the capture.
    for at in [0, 8, id.unwrap()] {
        let mut bytes = expected.clone();
        bytes[at] = bytes[at].wrapping_add(1);
        fs::write(&index, &bytes).unwrap();
        let again = kept.open();
        assert_eq!((build(&again).kept, build(&again).built), (0, cost.built), "byte {at}");
        assert_eq!(again.index_bytes(0), expected);
        again.save().unwrap();
        assert_eq!(fs::read(&index).unwrap(), expected, "it is written anew");
    }
    // The index of another version has another name. It stays, because that version may run again.
    let other = index.with_extension((INDEX_VERSION + 1).to_string());
    fs::write(&other, "another").unwrap();
    build(&kept.open());
    kept.open().save().unwrap();
    assert_eq!(fs::read(&other).unwrap(), b"another");
}

#[test]
fn a_folder_that_cannot_be_written_costs_the_index_alone() {
    let kept = KeptIndex::new();
    let alone = View::open(std::slice::from_ref(&kept.capture), None, 1 << 24).unwrap();
    build(&alone);
    // No user can create a folder in /proc, and a file is not a folder.
    for folder in [Path::new("/proc/ppt-view"), &kept.capture] {
        let captures = std::slice::from_ref(&kept.capture);
        let view = View::open(captures, Some(folder), 1 << 24).unwrap();
        build(&view);
        let refused = view.save().unwrap_err();
        assert!(
            matches!(&refused, ViewError::IndexFolder { path, .. } if path == folder),
            "{refused}"
        );
        assert_eq!(view.index_bytes(0), alone.index_bytes(0));
    }
}

#[test]
fn a_folder_of_others_is_refused() {
    let kept = KeptIndex::new();
    fs::create_dir_all(kept.cache()).unwrap();
    fs::set_permissions(kept.cache(), fs::Permissions::from_mode(0o770)).unwrap();
    let view = kept.open();
    build(&view);
    let refused = view.save().unwrap_err();
    assert!(matches!(refused, ViewError::IndexFolder { .. }), "{refused}");
    assert!(refused.to_string().contains("only its user"), "{refused}");
    assert_eq!(fs::read_dir(kept.cache()).unwrap().count(), 0);
}

#[test]
fn heads_alone_tell_rows_and_losses() {
    let kept = KeptIndex::new();
    let view = kept.open();
    let about = view.about();
    let frames: u64 = about.captures[0].captured;
    let threads: Vec<_> =
        about.rows.iter().filter(|row| row.id.to_string().starts_with("thread")).collect();
    let tids = threads.iter().map(|row| row.tid.unwrap()).collect::<BTreeSet<_>>();
    assert_eq!(
        tids,
        [1, 100, 101, 4_000_000].into(),
        "the two that write, and whom frames are about"
    );
    assert_eq!(threads.iter().map(|it| it.count).sum::<u64>(), frames);
    let lost: u64 = threads.iter().map(|thread| thread.lost).sum();
    assert!(lost > 0);
    assert_eq!(lost, about.captures[0].lost);
    let (from, to) = (about.from.unwrap(), about.to.unwrap() + 1);
    let rows = threads.iter().map(|thread| thread.id).collect();
    let request = WindowRequest { from, to, pixels: 100, rows, phase: Phase::Index };
    let cancel = AtomicBool::new(false);
    let rows: Vec<_> = view.window(&request, &cancel).map(Result::unwrap).collect();
    let cells = rows.iter().flat_map(|row| &row.cells);
    assert_eq!(cells.map(|it| it.count).sum::<u64>(), frames);
    let losses = rows.iter().flat_map(|row| &row.losses);
    assert_eq!(losses.map(|it| it.count).sum::<u64>(), lost);
}

#[test]
fn a_cell_leads_to_its_frame() {
    let kept = KeptIndex::new();
    let view = kept.open();
    build(&view);
    let about = view.about();
    let (from, to) = (about.from.unwrap(), about.to.unwrap() + 1);
    let depth = about.rows.iter().find(|row| row.id.to_string().starts_with("depth")).unwrap();
    let rows = vec![depth.id];
    let request = WindowRequest { from, to, pixels: 50, rows, phase: Phase::Index };
    let cancel = AtomicBool::new(false);
    let row = view.window(&request, &cancel).next().unwrap().unwrap();
    for cell in &row.cells {
        let name = view.frame_name(cell.best).unwrap();
        let frame = view.frame(&name).unwrap();
        assert_eq!((frame.frame.as_str(), frame.pid), ("job", 40));
        let time = |name: &str| {
            let field = frame.fields.iter().find(|field| field.name == name).unwrap();
            match field.content {
                Some(ppt_view::Content::Time(time)) => time,
                ref other => panic!("{other:?}"),
            }
        };
        assert_eq!(time("handle_end") - time("handle_start"), cell.longest as i64);
        let size = frame.fields.iter().find(|field| field.name == "size").unwrap();
        assert_eq!(size.unit, "B");
        assert_eq!(size.content, Some(ppt_view::Content::Integer(name.seqno.into())));
    }
    // Each slice is in the row of the thread that its frame is about.
    let rows: Vec<RowId> = about.rows.iter().map(|row| row.id).collect();
    let request = WindowRequest { rows, ..request };
    let threads: HashMap<RowId, Option<u32>> =
        about.rows.iter().map(|row| (row.id, row.tid)).collect();
    let mut found = BTreeSet::new();
    for row in view.window(&request, &cancel).map(Result::unwrap) {
        let (RowId::Depth { thread, .. } | RowId::Moments { thread, .. }) = row.row else {
            continue;
        };
        for cell in &row.cells {
            let name = view.frame_name(cell.best).unwrap();
            assert_eq!(view.thread_row(&name), Some(RowId::Thread(thread)));
            assert_eq!(view.frame_place(&name), Some(cell.best));
            let tid = view.frame(&name).unwrap().tid;
            assert_eq!(Some(tid), threads.get(&RowId::Thread(thread)).copied());
            found.insert(tid);
        }
    }
    assert_eq!(found, [1, 100, 101, 4_000_000].map(Some).into());
    let nobody =
        ppt_view::FrameName { seqno: 1 << 40, ..view.frame_name(row.cells[0].best).unwrap() };
    assert!(matches!(view.frame(&nobody), Err(ViewError::NoSuchFrame)));
}
