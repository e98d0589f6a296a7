//! A strategy for each host.

use alloc::{boxed::Box, sync::Arc};
use core::fmt;
use std::sync::OnceLock;

use paceline::RetryStrategy;
use papaya::HashMap;

type Make = dyn Fn(&str) -> Arc<dyn RetryStrategy> + Send + Sync;

/// A strategy that is made when it is first needed. Requests that come meanwhile wait.
type Made = OnceLock<Arc<dyn RetryStrategy>>;

/// The strategies of the hosts so far. A look-up takes no lock and allocates nothing.
pub(crate) struct Hosts {
    map: HashMap<Box<str>, Arc<Made>>,
    make: Arc<Make>,
    max: usize,
    /// The strategy of hosts beyond `max`. The map is bounded, since URLs may come from anywhere.
    others: Made,
}

impl Hosts {
    pub(crate) fn new(make: Arc<Make>, max: usize) -> Self {
        Self {
            map: HashMap::new(),
            make,
            max,
            others: Made::new(),
        }
    }

    /// Returns an empty map that makes strategies in the same way.
    pub(crate) fn with_max(&self, max: usize) -> Self {
        Self::new(Arc::clone(&self.make), max)
    }

    pub(crate) fn get(&self, host: &str) -> Arc<dyn RetryStrategy> {
        let map = self.map.pin();
        let made = match map.get(host) {
            Some(made) => made,
            // Threads that get here together may each add a host.
            None if map.len() >= self.max => {
                return Arc::clone(self.others.get_or_init(|| (self.make)("")));
            }
            // The map may make a cell for two threads, and keeps one cell.
            None => map.get_or_insert_with(Box::from(host), Arc::default),
        };
        Arc::clone(made.get_or_init(|| (self.make)(host)))
    }
}

impl fmt::Debug for Hosts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hosts")
            .field("map", &self.map)
            .field("max", &self.max)
            .field("others", &self.others)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use core::sync::atomic::{AtomicU32, Ordering::SeqCst};
    use std::{sync::Barrier, thread};

    use paceline::Standard;

    use super::*;

    #[test]
    fn a_host_that_threads_bring_together_is_asked_for_once() {
        let made = Arc::new(AtomicU32::new(0));
        let counted = Arc::clone(&made);
        let build = move |_: &str| -> Arc<dyn RetryStrategy> {
            counted.fetch_add(1, SeqCst);
            thread::yield_now();
            Arc::new(Standard::new())
        };
        let hosts = Hosts::new(Arc::new(build), 1_000);
        let (threads, barrier) = (8, Barrier::new(8));
        thread::scope(|scope| {
            for _ in 0..threads {
                scope.spawn(|| {
                    for host in 0..200 {
                        barrier.wait();
                        let _strategy = hosts.get(&host.to_string());
                    }
                });
            }
        });
        assert_eq!(made.load(SeqCst), 200);
    }
}
