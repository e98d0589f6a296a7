//! The cases, by path. A new one goes into the list of its path, and appears in every report.

mod acquired;
mod adaptive;
mod aws;
mod backoff;
mod engaged;
mod floor;
mod governed;
mod granted;
mod keyed;
mod quota;
mod refused;
mod standard;
mod three_limits;
mod twin;

#[path = "../../../tests/laws/models/aws_model.rs"]
#[expect(dead_code, reason = "the tests of the law use more of it")]
mod aws_model;

use crate::case::Case;

/// Returns all cases, in the order of the report.
#[must_use]
pub fn all() -> Vec<Case> {
    let lists = [
        floor::cases(),
        quota::cases(),
        standard::cases(),
        adaptive::cases(),
        engaged::cases(),
        granted::cases(),
        three_limits::cases(),
        keyed::cases(),
        acquired::cases(),
        refused::cases(),
        backoff::cases(),
    ];
    lists.into_iter().flatten().collect()
}

/// Returns the cases whose path and name contain `text`.
#[must_use]
pub fn matching(text: &str) -> Vec<Case> {
    let mut cases = all();
    cases.retain(|case| case.id().contains(text));
    cases
}
