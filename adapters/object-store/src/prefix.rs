//! Prefixes of paths, and their lanes.

use alloc::{boxed::Box, sync::Arc};
use core::fmt;
use std::sync::OnceLock;

use object_store::path::Path;
use papaya::HashMap;

use crate::Lanes;

type Make = dyn Fn(&str) -> Lanes + Send + Sync;

/// The lanes of the prefixes so far. A look-up takes no lock and allocates nothing.
pub(crate) struct Prefixes {
    depth: usize,
    map: HashMap<Box<str>, Arc<OnceLock<Lanes>>>,
    make: Box<Make>,
    max: usize,
    /// The lanes of prefixes that came when there was no room left.
    others: Lanes,
}

impl Prefixes {
    pub(crate) fn new(depth: usize, make: Box<Make>, max: usize) -> Self {
        let others = make("");
        Self {
            depth,
            map: HashMap::new(),
            make,
            max,
            others,
        }
    }

    pub(crate) fn with_max(self, max: usize) -> Self {
        Self { max, ..self }
    }

    /// Returns the lanes of `path`, an object's or a directory's.
    pub(crate) fn get(&self, path: &Path, is_directory: bool) -> Lanes {
        let prefix = prefix_of(path.as_ref(), self.depth, is_directory);
        if prefix.is_empty() {
            return self.others.clone();
        }
        let map = self.map.pin();
        let made = match map.get(prefix) {
            Some(made) => made,
            // Threads that get here together may each add a prefix.
            None if map.len() >= self.max => return self.others.clone(),
            // The map may make a cell for two threads, and keeps one cell.
            None => map.get_or_insert_with(Box::from(prefix), Arc::default),
        };
        made.get_or_init(|| (self.make)(prefix)).clone()
    }
}

/// Returns the first `depth` directories of `path`, or all if there are fewer.
fn prefix_of(path: &str, depth: usize, is_directory: bool) -> &str {
    let directory = match path.rsplit_once('/') {
        _ if is_directory => path,
        Some((directory, _)) => directory,
        None => "",
    };
    let mut ends = directory.match_indices('/').map(|(at, _)| at);
    match depth.checked_sub(1) {
        None => "",
        Some(before) => ends
            .nth(before)
            .and_then(|end| directory.get(..end))
            .unwrap_or(directory),
    }
}

impl fmt::Debug for Prefixes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Prefixes")
            .field("depth", &self.depth)
            .field("map", &self.map)
            .field("max", &self.max)
            .field("others", &self.others)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_is_so_many_directories() {
        let objects = [
            ("a/b/c/d.txt", 0, ""),
            ("a/b/c/d.txt", 1, "a"),
            ("a/b/c/d.txt", 2, "a/b"),
            ("a/b/c/d.txt", 3, "a/b/c"),
            ("a/b/c/d.txt", 9, "a/b/c"),
            ("d.txt", 1, ""),
            ("", 1, ""),
        ];
        for (path, depth, prefix) in objects {
            assert_eq!(prefix_of(path, depth, false), prefix, "{path} {depth}");
        }
        let directories = [
            ("a/b", 1, "a"),
            ("a/b", 2, "a/b"),
            ("a", 1, "a"),
            ("a", 0, ""),
            ("", 3, ""),
        ];
        for (path, depth, prefix) in directories {
            assert_eq!(prefix_of(path, depth, true), prefix, "{path} {depth}");
        }
    }
}
