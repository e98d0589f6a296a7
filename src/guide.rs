//! Guides. This module has no items to call.
//!
//! | I want to | guide |
//! |---|---|
//! | choose a mode, a law, a quota and their settings | [`choosing`] |
//! | be throttled less, in an existing client | [`choosing`](choosing#throttled-less) |
//! | copy, load or delete many objects through a limit | [`bulk_copy`] |
//! | stay under a limit that a service declares in its responses | [`declared`] |
//! | call a language model, by requests and tokens | [`several_limits`], [`client_crates`] |
//! | send again what was refused inside of a status 200, whole or in part | [`partial_failures`] |
//! | stay under several limits at once, with costs known afterwards | [`several_limits`] |
//! | let people's requests go before work that can wait | [`two_classes`] |
//! | run the retry loop, or put the loop into my crate | [`the_loop`] |
//! | end a tool that waits, by Ctrl-C | [`the_loop`](the_loop#ctrl-c) |
//! | test my client in tokio's paused time | [`the_loop`](the_loop#tests) |
//! | know what to write for my client crate | [`client_crates`] |
//! | share a limit between processes or machines | [`machines`] |
//! | see what it does: names, events, hooks, metrics, a dashboard | [`operating`] |
//! | put one bucket into my crate, or decide whether to depend on paceline | [`maintainers`] |
//! | compare limiters | [`comparing`] |
//! | move from aws-smithy-runtime, tower, governor, backon or reqwest-retry | [`comparing`](comparing#how-to-move) |
//! | understand how paceline is built, or change it | [`architecture`] |
//! | look up a term | [`glossary`] |

#![cfg_attr(
    not(all(
        feature = "async-io",
        feature = "aws-config",
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

#[cfg(feature = "aws-config")]
#[allow(unused_imports, reason = "what the guides link to")]
use crate::aws_config::*;
#[cfg(feature = "classify")]
#[allow(unused_imports, reason = "what the guides link to")]
use crate::classify::*;
#[cfg(feature = "scopes")]
#[allow(unused_imports, reason = "what the guides link to")]
use crate::scope::*;
#[cfg(feature = "std")]
#[allow(unused_imports, reason = "what the guides link to")]
use crate::{backoff::*, config::*, operation::*, strategy::*, wait::*};
#[allow(unused_imports, reason = "what the guides link to")]
use crate::{law::*, set::*, snapshot::*, *};

#[doc = include_str!("guide/choosing.md")]
pub mod choosing {}

#[doc = include_str!("guide/bulk_copy.md")]
pub mod bulk_copy {}

#[doc = include_str!("guide/client_crates.md")]
pub mod client_crates {}

#[doc = include_str!("guide/the_loop.md")]
pub mod the_loop {}

#[doc = include_str!("guide/maintainers.md")]
pub mod maintainers {}

#[doc = include_str!("guide/declared.md")]
pub mod declared {}

#[doc = include_str!("guide/two_classes.md")]
pub mod two_classes {}

#[doc = include_str!("guide/several_limits.md")]
pub mod several_limits {}

#[doc = include_str!("guide/partial_failures.md")]
pub mod partial_failures {}

#[doc = include_str!("guide/machines.md")]
pub mod machines {}

#[doc = include_str!("guide/operating.md")]
pub mod operating {}

#[doc = include_str!("guide/comparing.md")]
pub mod comparing {}

#[doc = include_str!("guide/architecture.md")]
pub mod architecture {}

#[doc = include_str!("guide/glossary.md")]
pub mod glossary {}
