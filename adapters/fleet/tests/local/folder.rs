//! A folder for one test.

use std::path::{Path, PathBuf};

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
