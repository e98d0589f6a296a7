//! What the table of refusals makes of what services send: every file in `tests/http/refusals` is one
//! service, and each refusal in it names the public page that documents it. The answers to four
//! questions stand beside it: send it again? when? is it a rate? of whom does it speak (the scope)?
//!
//! `cargo test --test refusals -- --nocapture` prints the table.

use alloc::collections::BTreeSet;
use core::{fmt::Write as _, time::Duration};
use std::{fs, path::Path};

use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use paceline::{
    RetryAfter, RetrySafety,
    classify::{HttpResponseParts, RefusalClassifier},
};

/// 1994-11-06 08:49:37 UTC, for refusals without a date.
const NOW: Duration = Duration::from_secs(784_111_777);

struct Refusal {
    service: String,
    name: String,
    page: String,
    answers: String,
    status: StatusCode,
    headers: HeaderMap,
    body: String,
}

fn refusals() -> Vec<Refusal> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/http/refusals");
    let files = fs::read_dir(folder).expect("the folder is there");
    let mut files: Vec<_> = files.map(|file| file.expect("a file").path()).collect();
    files.sort();
    let mut all = Vec::new();
    for file in files {
        let service = file.file_stem().expect("a name").to_string_lossy();
        let text = fs::read_to_string(&file).expect("text");
        let parts = text.split("== ").skip(1);
        all.extend(parts.map(|text| refusal(&service, text)));
    }
    all
}

fn refusal(service: &str, text: &str) -> Refusal {
    let (head, body) = text
        .split_once("\n\n")
        .expect("an empty line after the headers");
    let mut lines = head.lines();
    let mut next = || lines.next().expect("a line").to_owned();
    let (name, page, answers, status) = (next(), next(), next(), next());
    let status = status.strip_prefix("HTTP ").expect("a status");
    let headers = lines.map(|line| {
        let (name, value) = line.split_once(": ").expect("a header");
        let name: HeaderName = name.parse().expect("a name");
        (name, HeaderValue::from_str(value).expect("a value"))
    });
    Refusal {
        service: service.to_owned(),
        name,
        page: page.strip_prefix("page: ").expect("a page").to_owned(),
        answers,
        status: status.parse().expect("a status"),
        headers: headers.collect(),
        body: body.to_owned(),
    }
}

/// Returns what the table answers.
fn answered(refusal: &Refusal) -> String {
    let parts = HttpResponseParts::new(refusal.status, &refusal.headers)
        .with_local_time(NOW)
        .with_refusal(&refusal.body);
    let Some(read) = RefusalClassifier::new().read(&parts) else {
        return "again -, when -, rate -, scope -".to_owned();
    };
    let failure = read.failure();
    let yes = |is_so| if is_so { "yes" } else { "no" };
    let when = match failure.retry_after() {
        Some(RetryAfter::AtLeast(span) | RetryAfter::Clamped(span)) => shown(span),
        _ => "-".to_owned(),
    };
    let again = yes(failure.retry_safety() == RetrySafety::Yes);
    let rate = yes(failure.is_throttle());
    format!(
        "again {again}, when {when}, rate {rate}, scope {}",
        read.scope()
    )
}

/// Whole seconds, milliseconds, microseconds or nanoseconds.
fn shown(span: Duration) -> String {
    let nanos = span.as_nanos();
    let units = [(1_000_000_000, "s"), (1_000_000, "ms"), (1_000, "us")];
    let whole = units
        .into_iter()
        .find(|(unit, _)| nanos.checked_rem(*unit) == Some(0));
    let (unit, name) = whole.unwrap_or((1, "ns"));
    format!("{}{name}", nanos.checked_div(unit).unwrap_or_default())
}

#[test]
fn every_refusal_is_understood() {
    let (refusals, mut table, mut wrong) = (refusals(), String::new(), Vec::new());
    for refusal in &refusals {
        let Refusal {
            service,
            name,
            status,
            ..
        } = refusal;
        let answers = answered(refusal);
        let status = status.as_u16();
        writeln!(table, "{service:16} {status} {name:48} {answers}").expect("a string");
        if answers != refusal.answers {
            wrong.push(format!(
                "{service}: {name}: {answers}, not {}",
                refusal.answers
            ));
        }
    }
    println!("{table}");
    let services: BTreeSet<_> = refusals.iter().map(|refusal| &refusal.service).collect();
    println!(
        "{} refusals of {} services, {} wrong",
        refusals.len(),
        services.len(),
        wrong.len()
    );
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert!(refusals.len() >= 270 && services.len() >= 140);
    assert!(
        refusals
            .iter()
            .all(|refusal| refusal.page.starts_with("https://"))
    );
}

#[test]
fn without_its_body_no_refusal_is_taken_for_a_success() {
    for refusal in refusals()
        .iter()
        .filter(|refusal| refusal.status.as_u16() >= 400)
    {
        let parts = HttpResponseParts::new(refusal.status, &refusal.headers);
        let read = RefusalClassifier::new().read(&parts);
        assert!(read.is_some(), "{}: {}", refusal.service, refusal.name);
    }
}
