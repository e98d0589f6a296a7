//! `Debug` of an adapter's public types: one readable line of values.

use alloc::collections::BTreeSet;
use core::{any::type_name_of_val, fmt::Debug};
use std::{fs, path::Path};

/// Values of public types, as they print.
#[derive(Debug, Default)]
pub struct Shown(Vec<(String, String)>);

impl Shown {
    /// Adds a value.
    pub fn add<T: Debug>(&mut self, value: &T) {
        let name = type_name_of_val(value);
        let path = name.split('<').next().unwrap_or(name);
        let name = path.rsplit("::").next().unwrap_or(path);
        self.0.push((name.to_owned(), format!("{value:?}")));
    }

    /// Checks that each public type in the crate's sources was added, and prints in one line of
    /// values. `manifest` is the folder of the crate.
    pub fn check(&self, manifest: &str) {
        let shown: BTreeSet<_> = self.0.iter().map(|(name, _)| name.clone()).collect();
        let mut public = BTreeSet::new();
        collect(&Path::new(manifest).join("src"), &mut public);
        assert_eq!(shown, public);
        for (_, line) in &self.0 {
            assert!(line.len() <= 350 && !line.contains('\n'), "{line}");
            for inside in ["0x", "::", "Atomic", "_ns", "nanos"] {
                assert!(!line.contains(inside), "{inside} in {line}");
            }
        }
    }
}

/// Collects the names after `pub struct` and `pub enum` in the files of a folder.
fn collect(folder: &Path, names: &mut BTreeSet<String>) {
    for entry in fs::read_dir(folder).expect("the sources") {
        let path = entry.expect("a file").path();
        if path.is_dir() {
            collect(&path, names);
            continue;
        }
        let text = fs::read_to_string(&path).expect("a source file");
        names.extend(text.lines().filter_map(|line| {
            let line = line.trim_start();
            let item = line.strip_prefix("pub struct ");
            let item = item.or_else(|| line.strip_prefix("pub enum "))?;
            let end = item.find(|c: char| !c.is_alphanumeric())?;
            item.get(..end).map(str::to_owned)
        }));
    }
}
