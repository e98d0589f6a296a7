//! Reports, refusals and ledgers that the tests share.

use super::super::hear::{Hearing, ResetAt, Told};
use super::super::ledger::{Kind, Ledger, Within, amount, to_i64};
use super::super::report::{LimitName, Observed};
use super::super::seen::Seen;
use super::super::throttle::Refused;
use crate::fixed::SECOND;

/// A report of the send at `order`, heard 100 ms after it.
pub(super) fn report(now: u64, order: u64, remaining: u64) -> Told {
    Told {
        now,
        sent_at: now - SECOND / 10,
        order,
        weight: 1,
        sent: order,
        policy: LimitName::default(),
        limit: Some(100),
        remaining,
        window: None,
        reset: None,
        refills: None,
        date: None,
    }
}

/// The same report, with a window of ten seconds that ends `reset` nanoseconds later.
pub(super) fn of_ten_seconds(now: u64, order: u64, remaining: u64, reset: u64) -> Told {
    Told {
        window: Some(10 * SECOND),
        reset: Some(ResetAt::In(reset)),
        refills: Some(false),
        ..report(now, order, remaining)
    }
}

/// A ledger after these reports.
pub(super) fn after_all(reports: &[Told]) -> Ledger {
    let heard = |ledger: Ledger, told| ledger.report(told).0;
    reports.iter().fold(Ledger::default(), heard)
}

/// A ledger of 100 in windows of ten seconds, reset at 9 s. `left` are left at 1 s, after the tenth
/// send.
pub(super) fn window(left: u64) -> Ledger {
    Ledger {
        limit: 100,
        window: 10 * SECOND,
        kind: Kind::Window,
        kind_told: true,
        left: to_i64(amount(left)),
        position: 10,
        at: SECOND,
        reset: Within {
            lo: 9_000_000_000,
            hi: 9_000_000_000,
        },
        seen: Seen {
            trip: SECOND / 10,
            heaviest: 1,
            ..Seen::default()
        },
        heard_at: SECOND,
        ..Ledger::default()
    }
}

/// The same ledger for a refill.
pub(super) fn refill(left: u64) -> Ledger {
    Ledger {
        kind: Kind::Refill,
        ..window(left)
    }
}

/// A refusal of the send at `order` at 2 s, with a pause of a second.
pub(super) fn refused(order: u64) -> Refused {
    Refused {
        now: 2 * SECOND,
        order,
        until: 3 * SECOND,
        blamed: true,
    }
}

/// A report while a ledger takes it in.
pub(super) fn hearing<'a>(last: &'a Ledger, told: &'a Told, reset: Option<Within>) -> Hearing<'a> {
    Hearing {
        told,
        reset,
        last,
        next: *last,
    }
}

/// The effect of the last of these reports.
pub(super) fn last(reports: &[Told]) -> Option<Observed> {
    let (last, before) = reports.split_last().expect("there is one");
    after_all(before).report(last).1
}
