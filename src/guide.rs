//! Guides, of ten minutes each. There is nothing here to call.
//!
//! | guide | for whoever |
//! |---|---|
//! | [`choosing`] | begins: which mode, which law, how many of them |
//! | [`clients`] | writes a client with many threads and many requests |
//! | [`embedding`] | puts one bucket into a retry crate of their own |
//! | [`comparing`] | compares limiters |
//! | [`migrating`] | comes from aws-smithy-runtime, tower or governor |
//! | [`architecture`] | wants to know how it is built, or to change it |

#[allow(unused_imports, reason = "what the guides link to")]
use crate::{
    backoff::*, classify::*, config::*, law::*, operation::*, scope::*, snapshot::*, strategy::*,
    wait::*, *,
};

#[doc = include_str!("guide/choosing.md")]
pub mod choosing {}

#[doc = include_str!("guide/clients.md")]
pub mod clients {}

#[doc = include_str!("guide/embedding.md")]
pub mod embedding {}

#[doc = include_str!("guide/comparing.md")]
pub mod comparing {}

#[doc = include_str!("guide/migrating.md")]
pub mod migrating {}

#[doc = include_str!("guide/architecture.md")]
pub mod architecture {}
