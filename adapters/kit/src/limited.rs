//! A limit as services enforce it.

use core::{
    sync::atomic::{AtomicUsize, Ordering::Relaxed},
    time::Duration,
};
use std::{sync::Mutex, time::Instant};

use crate::{OK, SECOND, Said};

/// A bucket of the requests of one second, which refills evenly in real time.
#[derive(Debug)]
pub struct Limited {
    /// The time in which one request comes back.
    each: Duration,
    /// When the bucket will be full.
    full: Mutex<Instant>,
    refused: AtomicUsize,
}

impl Limited {
    /// Creates a full bucket.
    #[must_use]
    pub fn new(a_second: u32) -> Self {
        Self {
            each: SECOND / a_second,
            full: Mutex::new(Instant::now()),
            refused: AtomicUsize::new(0),
        }
    }

    /// Takes a request out of the bucket. Returns `false` if none was left.
    #[must_use]
    pub fn admits(&self) -> bool {
        let mut full = self.full.lock().expect("no test panicked in here");
        let now = Instant::now();
        let then = now.max(*full) + self.each;
        let admits = then - now <= SECOND;
        if admits {
            *full = then;
        }
        // A count, which orders nothing else.
        self.refused.fetch_add(usize::from(!admits), Relaxed);
        admits
    }

    /// Returns Shopify's answer to a query, with status 200 in both cases.
    #[must_use]
    pub fn graphql(&self) -> Said {
        OK.body(if self.admits() {
            GRAPHQL_OK
        } else {
            GRAPHQL_THROTTLED
        })
    }

    /// Returns how many requests were refused.
    #[must_use]
    pub fn refused(&self) -> usize {
        self.refused.load(Relaxed)
    }
}

/// What Shopify sends with status 200 for a query that it refused.
pub const GRAPHQL_THROTTLED: &str =
    r#"{"errors":[{"message":"Throttled","extensions":{"code":"THROTTLED"}}]}"#;
/// What Shopify sends for a query that it answered.
pub const GRAPHQL_OK: &str = r#"{"data":{"shop":{"name":"a"}}}"#;
/// What Elasticsearch sends with status 200 for three items if it refused the second.
pub const BULK_IN_PART: &str = r#"{"errors":true,"items":[{"index":{"status":201}},{"index":{"status":429}},{"index":{"status":201}}]}"#;
