//! "`RateLimit` header fields for HTTP", IETF drafts 07 to 11, and the names that the working group
//! has considered since.

use alloc::borrow::Cow;
use core::time::Duration;

use http::{HeaderMap, HeaderValue};

use super::field::{self, Member, Partition};
use super::reader::Reader;
use crate::law::{Dimension, LimitName, LimitReport};

pub(super) fn read(reader: &mut Reader<'_>) {
    let Some(value) = combined(reader.headers, "ratelimit") else {
        return;
    };
    let policies = others(reader, "ratelimit-policy");
    if let Ok(members) = field::list(&value) {
        let parted = others(reader, "ratelimit-partition");
        for member in &members {
            match member.left() {
                Ok(Some((remaining, reset))) => {
                    let report = plain(remaining, None, reset, reader);
                    let report = of_member(report, member, &policies, &parted, reader);
                    if !reader.push(report) {
                        // Either of the two may hold.
                        reader.ignore();
                    }
                }
                Ok(None) => {}
                Err(_) => reader.ignore(),
            }
        }
        return;
    }
    let Ok(found) = field::dictionary(&value) else {
        return reader.ignore();
    };
    let numbers = (
        found.remaining.value.get(),
        found.limit.value.get(),
        found.reset.value.get(),
    );
    let (Ok(Some(remaining)), Ok(limit), Ok(reset)) = numbers else {
        return reader.ignore();
    };
    // Draft 07 names the policy by its quota: `100;w=60`.
    let same = |policy: &&Member| limit.is_some() && policy.value.get() == Ok(limit);
    let policy = policies.iter().find(same);
    let mut report = plain(remaining, limit, reset, reader);
    if let Some(window) = policy.and_then(|policy| reader.window(policy.window)) {
        report = report.window(Duration::from_secs(window));
    }
    // The field shows the tightest policy. The next response may show another policy.
    if let (Some(limit), Some(_), 2..) = (limit, policy, policies.len()) {
        report = report.policy(LimitName::new(limit.to_string()));
    }
    reader.push(report);
}

/// Reads the list in another field, and counts the field if it is wrong.
fn others(reader: &mut Reader<'_>, name: &str) -> Vec<Member> {
    let value = combined(reader.headers, name);
    let known = value.map_or(Ok(Vec::new()), |value| field::list(&value));
    known.unwrap_or_else(|_| {
        reader.ignore();
        Vec::new()
    })
}

/// Returns the lines of a header as one value (RFC 9110, section 5.3; RFC 9651, section 4.2), or
/// `None` if there are none.
fn combined<'a>(headers: &'a HeaderMap, name: &str) -> Option<Cow<'a, [u8]>> {
    let mut lines = headers.get_all(name).iter().map(HeaderValue::as_bytes);
    let mut value = Cow::Borrowed(lines.next()?);
    for line in lines {
        let value = value.to_mut();
        value.extend_from_slice(b", ");
        value.extend_from_slice(line);
    }
    Some(value)
}

fn plain(
    remaining: u64,
    limit: Option<u64>,
    reset: Option<u64>,
    reader: &mut Reader<'_>,
) -> LimitReport {
    let report = LimitReport::new(remaining);
    let report = limit.map_or(report, |limit| report.limit(limit));
    let reset = reset.and_then(|reset| reader.reset_of(reset.to_string().as_bytes()));
    reset.map_or(report, |reset| report.reset(reset))
}

fn of_member(
    mut report: LimitReport,
    member: &Member,
    policies: &[Member],
    parted: &[Member],
    reader: &mut Reader<'_>,
) -> LimitReport {
    // A policy may be there once for each partition.
    let named = || policies.iter().filter(|policy| policy.name == member.name);
    let same = named().find(|policy| policy.partition == member.partition);
    let policy = same.or_else(|| named().next());
    let quota = policy.map_or(member.quota, |policy| policy.quota);
    if let Some(quota) = reader.known(quota) {
        report = report.limit(quota);
    }
    if let Some(window) = policy.and_then(|policy| reader.window(policy.window)) {
        report = report.window(Duration::from_secs(window));
    }
    if let Some(cost) = reader.known(member.cost) {
        report = report.cost(cost);
    }
    let name = member.name.as_deref().unwrap_or_default();
    let mut name = LimitName::new(name);
    let partition = match (&member.partition, policy) {
        (Partition::Absent, Some(policy)) => &policy.partition,
        (partition, _) => partition,
    };
    match partition {
        Partition::Absent => {}
        Partition::Is(key) => name = name.of_partition(key),
        Partition::Wrong => reader.ignore(),
    }
    let by_name = parted.iter().find(|parted| parted.name == member.name);
    if let Some(parted) = by_name.filter(|parted| !parted.parameters.is_empty()) {
        name = name.of_partition(&parted.parameters);
    }
    let unit = policy.and_then(|policy| policy.unit.as_deref());
    let unit = unit.or(member.unit.as_deref());
    report.policy(name).dimension(dimension(unit))
}

/// Reads the unit of a quota. Drafts and services write some units in the singular.
fn dimension(unit: Option<&str>) -> Dimension {
    let Some(unit) = unit else {
        return Dimension::Requests;
    };
    match unit.to_ascii_lowercase().as_str() {
        "request" | "requests" => Dimension::Requests,
        "token" | "tokens" => Dimension::Tokens,
        "concurrency" | "concurrent-request" | "concurrent-requests" => {
            Dimension::CONCURRENT_REQUESTS
        }
        "content-byte" | "content-bytes" => Dimension::Named(LimitName::of(b"content-bytes")),
        unit => Dimension::Named(LimitName::new(unit)),
    }
}
