//! A file as the engine, with the clock of a scene.

use std::cell::Cell;
use std::path::PathBuf;
use std::rc::Rc;

use crate::fault::EngineFault;
use crate::local::file::File;
use crate::local::time::Reading;
use crate::wire::Step;

/// The file, removed when this is dropped.
pub(crate) struct Disk {
    file: File,
    folder: PathBuf,
    micros: Rc<Cell<u64>>,
}

impl std::fmt::Debug for Disk {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Disk")
            .field("folder", &self.folder)
            .finish_non_exhaustive()
    }
}

impl Disk {
    pub(crate) fn new(scene: &str) -> Self {
        let name = format!(
            "paceline-{scene}-{}-{:x}",
            std::process::id(),
            fastrand::u32(..)
        );
        let folder = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&folder).expect("a folder for temporary files");
        let micros = Rc::new(Cell::new(0));
        let clock = Rc::clone(&micros);
        let clocks = Box::new(move || Reading {
            since: "the beginning".to_owned(),
            micros: clock.get(),
            wall: clock.get(),
        });
        Self {
            file: File::new(folder.join("limits"), clocks),
            folder,
            micros,
        }
    }

    pub(crate) fn take(
        &self,
        micros: u64,
        member: &str,
        words: &str,
    ) -> Result<Vec<i64>, EngineFault> {
        self.micros.set(micros);
        self.file.take(Step::Send, "scope", member, words)
    }

    /// Deletes the file under its members.
    pub(crate) fn forget(&self) {
        for name in ["limits", "limits-wal", "limits-shm"] {
            std::fs::remove_file(self.folder.join(name)).expect("it is there");
        }
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _left = std::fs::remove_dir_all(&self.folder);
    }
}
