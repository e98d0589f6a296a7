//! A folder for one test.

use std::path::{Path, PathBuf};
use std::time::Duration;

/// A folder that is removed when this is dropped.
#[derive(Debug)]
pub(crate) struct Folder(PathBuf);

impl Folder {
    pub(crate) fn new(test: &str) -> Self {
        let name = format!("paceline-local-{test}-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&path).expect("a folder for temporary files");
        Self(path)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    pub(crate) fn file(&self) -> PathBuf {
        self.0.join("limits")
    }

    /// Makes the file no store any more, in place, and returns what it is then.
    pub(crate) fn ruin(&self, how: &str) -> Vec<u8> {
        // What stands behind the file would heal it.
        let other = rusqlite::Connection::open(self.file()).expect("SQLite's");
        other.busy_timeout(Duration::from_secs(1)).expect("a time");
        let copied = other.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()));
        copied.expect("no other step holds it for long");
        drop(other);
        let whole = std::fs::read(self.file()).expect("it is there");
        let ruin = match how {
            "emptied" => Vec::new(),
            "cut" => whole[..5_000].to_vec(),
            _ => whole.iter().map(|_| fastrand::u8(..)).collect(),
        };
        std::fs::write(self.file(), &ruin).expect("it takes writes");
        ruin
    }

    /// Returns how many bytes the file has, with those beside it.
    pub(crate) fn bytes(&self) -> u64 {
        let files = std::fs::read_dir(&self.0).expect("it is there");
        let sizes = files.map(|file| {
            file.and_then(|file| file.metadata())
                .map_or(0, |of| of.len())
        });
        sizes.sum()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _left = std::fs::remove_dir_all(&self.0);
    }
}
