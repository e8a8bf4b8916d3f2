//! Shows pictures: reads their numbers from stdin.

use std::io::{ErrorKind, Read};

ppt_probe::include_frames!("video");

use video::{Picture, PictureStep};

fn main() -> std::io::Result<()> {
    let mut pictures = std::io::stdin().lock();
    let (mut count, mut n) = (0, [0; 4]);
    loop {
        match pictures.read_exact(&mut n) {
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => break,
            read => read?,
        }
        Picture::step(PictureStep::Shown, |f| f.n = u32::from_ne_bytes(n));
        count += 1;
    }
    println!("shown {count}");
    Ok(())
}
