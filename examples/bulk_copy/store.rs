//! The objects that a service holds, by path, and the names that a run gives them.

use std::collections::HashMap;

use hyper::body::Bytes;

/// Objects by path (`/bucket/key`).
#[derive(Debug, Default)]
pub(crate) struct Store {
    objects: HashMap<String, Bytes>,
}

impl Store {
    /// Creates a store that holds the `objects` sources of a run.
    pub(crate) fn with_sources(objects: u32) -> Self {
        let objects = (0..objects).map(|number| (source(number), contents(number)));
        Self {
            objects: objects.collect(),
        }
    }

    /// Returns the object at `path`.
    pub(crate) fn get(&self, path: &str) -> Option<Bytes> {
        self.objects.get(path).cloned()
    }

    /// Writes an object, over one that is there already.
    pub(crate) fn put(&mut self, path: &str, body: Bytes) {
        self.objects.insert(path.to_owned(), body);
    }

    /// Returns how many of the run's `objects` are at their destination with the right contents.
    pub(crate) fn copies(&self, objects: u32) -> u64 {
        (0..objects)
            .filter(|number| self.objects.get(&destination(*number)) == Some(&contents(*number)))
            .map(|_| 1)
            .sum()
    }
}

/// Returns the path that object `number` is copied from.
pub(crate) fn source(number: u32) -> String {
    format!("/lake/raw/part-{number:06}.parquet")
}

/// Returns the path that object `number` is copied to.
pub(crate) fn destination(number: u32) -> String {
    format!("/backup/raw/part-{number:06}.parquet")
}

/// Returns the 64 bytes of object `number`; no two objects have the same.
fn contents(number: u32) -> Bytes {
    Bytes::from(format!("{number:064}"))
}

#[cfg(test)]
mod tests {
    use super::{Store, contents, destination, source};

    #[test]
    fn only_copies_with_the_right_contents_are_counted() {
        let mut store = Store::with_sources(3);
        assert_eq!(store.copies(3), 0);
        let first = store.get(&source(0)).expect("a source is there");
        store.put(&destination(0), first.clone());
        store.put(&destination(1), first);
        assert_eq!(store.copies(3), 1);
        store.put(&destination(1), contents(1));
        assert_eq!(store.copies(3), 2);
    }
}
