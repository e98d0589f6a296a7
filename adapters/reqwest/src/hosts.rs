//! A strategy for each host.

use alloc::{boxed::Box, sync::Arc};
use core::fmt;

use paceline::RetryStrategy;
use papaya::HashMap;

type Make = dyn Fn(&str) -> Arc<dyn RetryStrategy> + Send + Sync;

/// The strategies of the hosts so far. A look-up takes no lock and allocates nothing.
pub(crate) struct Hosts {
    map: HashMap<Box<str>, Arc<dyn RetryStrategy>>,
    make: Arc<Make>,
    max: usize,
    /// Of the hosts that came when there was no room left: URLs may come from anywhere.
    others: Arc<dyn RetryStrategy>,
}

impl Hosts {
    pub(crate) fn new(make: Arc<Make>, max: usize) -> Self {
        let others = make("");
        Self {
            map: HashMap::new(),
            make,
            max,
            others,
        }
    }

    /// Returns what makes strategies in the same way, with none made yet.
    pub(crate) fn with_max(&self, max: usize) -> Self {
        Self {
            map: HashMap::new(),
            make: Arc::clone(&self.make),
            max,
            others: Arc::clone(&self.others),
        }
    }

    pub(crate) fn get(&self, host: &str) -> Arc<dyn RetryStrategy> {
        let map = self.map.pin();
        if let Some(strategy) = map.get(host) {
            return Arc::clone(strategy);
        }
        // Threads that get here together may each add one.
        if map.len() >= self.max {
            return Arc::clone(&self.others);
        }
        let strategy = map.get_or_insert_with(Box::from(host), || (self.make)(host));
        Arc::clone(strategy)
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
