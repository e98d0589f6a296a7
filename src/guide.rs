//! Guides. This module has no items to call.
//!
//! | guide | read it to |
//! |---|---|
//! | [`choosing`] | choose a mode, a law, a quota and their settings |
//! | [`throttled_less`] | be throttled less, in an existing client |
//! | [`bulk_copy`] | copy, load or delete many objects through a limit |
//! | [`clients`] | write a client with many threads and many requests |
//! | [`client_crates`] | know what to write for your client crate |
//! | [`the_loop`] | put the retry loop into another crate |
//! | [`embedding`] | put one bucket into another crate |
//! | [`declared`] | stay under a limit that a service says in its responses |
//! | [`two_classes`] | let what someone waits for go first, before work that can wait |
//! | [`several_limits`] | stay under several limits at once, with costs known afterwards |
//! | [`machines`] | share a limit between machines |
//! | [`operating`] | see what it does: names, events, hooks, metrics, a dashboard |
//! | [`comparing`] | compare limiters |
//! | [`migrating`] | move from aws-smithy-runtime, tower, governor, backon or reqwest-retry |
//! | [`architecture`] | understand how paceline is built, or change it |
//! | [`glossary`] | look up a term |

#![cfg_attr(
    not(all(
        feature = "async-io",
        feature = "http",
        feature = "metrics",
        feature = "scopes",
        feature = "tokio"
    )),
    allow(
        rustdoc::broken_intra_doc_links,
        reason = "guides name items of features that are off"
    )
)]

#[cfg(feature = "scopes")]
#[allow(unused_imports, reason = "what the guides link to")]
use crate::scope::*;
#[cfg(feature = "std")]
#[allow(unused_imports, reason = "what the guides link to")]
use crate::{backoff::*, classify::*, config::*, operation::*, strategy::*, wait::*};
#[allow(unused_imports, reason = "what the guides link to")]
use crate::{law::*, snapshot::*, *};

#[doc = include_str!("guide/choosing.md")]
pub mod choosing {}

#[doc = include_str!("guide/throttled_less.md")]
pub mod throttled_less {}

#[doc = include_str!("guide/bulk_copy.md")]
pub mod bulk_copy {}

#[doc = include_str!("guide/clients.md")]
pub mod clients {}

#[doc = include_str!("guide/client_crates.md")]
pub mod client_crates {}

#[doc = include_str!("guide/the_loop.md")]
pub mod the_loop {}

#[doc = include_str!("guide/embedding.md")]
pub mod embedding {}

#[doc = include_str!("guide/declared.md")]
pub mod declared {}

#[doc = include_str!("guide/two_classes.md")]
pub mod two_classes {}

#[doc = include_str!("guide/several_limits.md")]
pub mod several_limits {}

#[doc = include_str!("guide/machines.md")]
pub mod machines {}

#[doc = include_str!("guide/operating.md")]
pub mod operating {}

#[doc = include_str!("guide/comparing.md")]
pub mod comparing {}

#[doc = include_str!("guide/migrating.md")]
pub mod migrating {}

#[doc = include_str!("guide/architecture.md")]
pub mod architecture {}

#[doc = include_str!("guide/glossary.md")]
pub mod glossary {}
