//! The shared secret. A host that has it may send questions and is trusted.

use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use hmac::{Hmac, KeyInit, Mac};
use rustix::fs::{CWD, FileType, Mode, OFlags, fstat, openat};
use rustix::process::geteuid;
use sha2::Sha256;

/// Shortest key, in bytes.
pub const MIN_KEY: usize = 16;
/// Longest key, in bytes. A longer file was probably named by mistake.
const MAX_KEY: usize = 4096;
/// Length of a tag in bytes: the left half of an HMAC-SHA256.
pub const TAG: usize = 16;

/// A key. No output shows its bytes.
#[derive(Clone)]
pub struct SharedKey(Hmac<Sha256>);

/// Why a file is not a usable key.
#[derive(Debug, thiserror::Error)]
pub enum KeyError {
    /// The file cannot be read.
    #[error("cannot read the key {}: {cause}", path.display())]
    System {
        /// The file.
        path: PathBuf,
        /// The system's message.
        cause: io::Error,
    },
    /// The path is a folder, a device, a FIFO or a link.
    #[error("the key {} is not a regular file", .0.display())]
    NotAFile(PathBuf),
    /// The file belongs to another user.
    #[error("the key {} belongs to user {owner}, and not to you (user {us})", path.display())]
    Foreign {
        /// The file.
        path: PathBuf,
        /// The user id of the owner.
        owner: u32,
        /// The caller.
        us: u32,
    },
    /// Other users may read or write it.
    #[error("others may use the key {}: its mode is {mode:04o}, and must be 0600", path.display())]
    Open {
        /// The file.
        path: PathBuf,
        /// The permissions, as in `st_mode`.
        mode: u32,
    },
    /// The key is so short that it can be guessed.
    #[error("the key {} has {length} bytes; a key has at least {MIN_KEY}", path.display())]
    Short {
        /// The file.
        path: PathBuf,
        /// The length in bytes, without the final newline.
        length: usize,
    },
    /// The file is too long to be a key.
    #[error("the key {} has more than {MAX_KEY} bytes", .0.display())]
    Long(PathBuf),
}

impl SharedKey {
    /// A key of these bytes. `None` if they are fewer than [`MIN_KEY`].
    pub fn new(bytes: &[u8]) -> Option<Self> {
        if bytes.len() < MIN_KEY {
            return None;
        }
        Hmac::new_from_slice(bytes).ok().map(Self)
    }

    /// Reads a key: a regular file of mode 0600 owned by the caller. A final newline is not part of
    /// the key, because editors add one.
    ///
    /// # Errors
    /// The file cannot be read, others may read it, or it is too short or too long.
    pub fn read(path: &Path) -> Result<Self, KeyError> {
        let system = |cause: io::Error| KeyError::System { path: path.into(), cause };
        // Opening a FIFO would block until it has a writer.
        let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK;
        let opened = match openat(CWD, path, flags, Mode::empty()) {
            Err(rustix::io::Errno::LOOP) => return Err(KeyError::NotAFile(path.into())),
            opened => opened.map_err(|error| system(error.into()))?,
        };
        let found = fstat(&opened).map_err(|error| system(error.into()))?;
        if FileType::from_raw_mode(found.st_mode) != FileType::RegularFile {
            return Err(KeyError::NotAFile(path.into()));
        }
        let (owner, us) = (found.st_uid, geteuid().as_raw());
        if owner != us {
            return Err(KeyError::Foreign { path: path.into(), owner, us });
        }
        let mode = found.st_mode & 0o7777;
        if mode & 0o077 != 0 {
            return Err(KeyError::Open { path: path.into(), mode });
        }
        let mut bytes = Vec::with_capacity(MAX_KEY + 1);
        let limit = MAX_KEY as u64 + 1;
        File::from(opened).take(limit).read_to_end(&mut bytes).map_err(system)?;
        if bytes.len() > MAX_KEY {
            return Err(KeyError::Long(path.into()));
        }
        let bytes = bytes.strip_suffix(b"\n").unwrap_or(&bytes);
        let bytes = bytes.strip_suffix(b"\r").unwrap_or(bytes);
        Self::new(bytes).ok_or(KeyError::Short { path: path.into(), length: bytes.len() })
    }

    /// The tag of `bytes`, which only a holder of the key can compute.
    pub fn tag(&self, bytes: &[u8]) -> [u8; TAG] {
        let whole = self.0.clone().chain_update(bytes).finalize().into_bytes();
        std::array::from_fn(|at| whole[at])
    }

    /// Whether `tag` is the tag of `bytes` under this key; runs in constant time.
    pub fn is_authentic(&self, bytes: &[u8], tag: &[u8; TAG]) -> bool {
        self.0.clone().chain_update(bytes).verify_truncated_left(tag).is_ok()
    }
}

impl fmt::Debug for SharedKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key")
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    fn file(folder: &Path, content: &[u8], mode: u32) -> PathBuf {
        let path = folder.join("key");
        fs::write(&path, content).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        path
    }

    #[test]
    fn the_tag_is_the_left_half_of_hmac_sha256() {
        // RFC 4231, test case 3.
        let key = SharedKey::new(&[0xaa; 20]).unwrap();
        let data = [0xdd; 50];
        let tag = [
            0x77, 0x3e, 0xa9, 0x1e, 0x36, 0x80, 0x0e, 0x46, 0x85, 0x4d, 0xb8, 0xeb, 0xd0, 0x91,
            0x81, 0xa7,
        ];
        assert_eq!(key.tag(&data), tag);
        assert!(key.is_authentic(&data, &tag));
        for bit in 0..TAG * 8 {
            let mut forged = tag;
            forged[bit / 8] ^= 1 << (bit % 8);
            assert!(!key.is_authentic(&data, &forged), "bit {bit}");
        }
        assert!(!SharedKey::new(&[0xab; 20]).unwrap().is_authentic(&data, &tag));
    }

    #[test]
    fn a_key_is_the_owners_alone() {
        let folder = tempfile::tempdir().unwrap();
        let secret = b"0123456789abcdef";
        let tag = SharedKey::new(secret).unwrap().tag(b"it");
        for content in [&secret[..], b"0123456789abcdef\n", b"0123456789abcdef\r\n"] {
            for mode in [0o600, 0o400] {
                let key = SharedKey::read(&file(folder.path(), content, mode)).unwrap();
                assert_eq!(key.tag(b"it"), tag);
                assert_eq!(format!("{key:?}"), "Key");
                fs::remove_file(folder.path().join("key")).unwrap();
            }
        }
        for mode in [0o640, 0o604, 0o620, 0o602, 0o601, 0o666] {
            let error = SharedKey::read(&file(folder.path(), secret, mode)).unwrap_err();
            assert!(matches!(error, KeyError::Open { mode: it, .. } if it == mode), "{error}");
        }
    }

    #[test]
    fn other_files_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = file(folder.path(), b"0123456789abcde\n", 0o600);
        let error = SharedKey::read(&path).unwrap_err();
        assert!(matches!(error, KeyError::Short { length: 15, .. }), "{error}");
        let path = file(folder.path(), &[b'x'; MAX_KEY + 1], 0o600);
        assert!(matches!(SharedKey::read(&path), Err(KeyError::Long(_))));
        let link = folder.path().join("link");
        symlink(&path, &link).unwrap();
        assert!(matches!(SharedKey::read(&link), Err(KeyError::NotAFile(_))));
        assert!(matches!(SharedKey::read(folder.path()), Err(KeyError::NotAFile(_))));
        assert!(matches!(SharedKey::read("/dev/zero".as_ref()), Err(KeyError::NotAFile(_))));
        let nowhere = SharedKey::read(&folder.path().join("nowhere")).unwrap_err();
        assert!(nowhere.to_string().ends_with("No such file or directory (os error 2)"));
    }
}
