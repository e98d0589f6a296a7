//! The events of requests and limits, for hooks and for `tracing`.

use alloc::sync::Arc;
use core::{fmt, time::Duration};

use super::{StrategyId, refusal::StopReason};
use crate::{Failure, SendRateSnapshot, law::Dimension, snapshot::DeclaredLimit};

/// An event of a strategy or of one of its operations. A
/// [hook](crate::config::StrategyBuilder::on_event) is called with it.
///
/// `{}` prints an event in one line. [`guide::operating`](crate::guide::operating) lists all of
/// them, with their levels and fields in `tracing`.
#[derive(Debug)]
#[non_exhaustive]
pub struct Event<'a> {
    /// The strategy's number; `None` if the strategy has no number.
    pub strategy: Option<StrategyId>,
    /// The [name](crate::RetryStrategy::name) of the strategy or of the scope.
    pub name: Option<&'a str>,
    /// What happened.
    pub kind: EventKind<'a>,
}

/// What happened, in an [`Event`].
#[derive(Debug)]
#[non_exhaustive]
pub enum EventKind<'a> {
    /// An attempt is let go. Not for `tracing`.
    Sent {
        /// How long the attempt waited in line.
        waited: Duration,
        /// Whether the attempt is [background](crate::Class::Background).
        background: bool,
    },
    /// An operation succeeded. Not for `tracing`.
    Succeeded {
        /// The attempts of the operation. In bulk, throttled attempts do not count.
        attempts: u32,
    },
    /// The caller dropped an operation before its end. Not for `tracing`.
    Cancelled {
        /// The attempts that were sent, counted as for a success.
        attempts: u32,
    },
    /// An attempt failed, and another attempt follows.
    Retrying {
        /// The number of the attempt that failed.
        attempt: u32,
        /// The failure of the attempt.
        failure: &'a Failure,
        /// The backoff before the next attempt.
        delay: Duration,
    },
    /// The strategy refused a retry.
    RetryRefused {
        /// The number of the attempt that failed, counted as for a success.
        attempt: u32,
        /// The failure of the attempt.
        failure: &'a Failure,
        /// Why there is no other attempt.
        reason: StopReason,
    },
    /// The strategy refused to send an attempt, because it would have had to wait for too long.
    SendRefused {
        /// The time until the attempt's turn, at today's rate.
        wait: Duration,
        /// Whether the attempt is [background](crate::Class::Background).
        background: bool,
    },
    /// Sends are refused. This event comes at most once a second, with a refusal.
    /// [`SendRefused`](Self::SendRefused) comes with each refusal.
    SendsRefused {
        /// The number of refused sends since the strategy was built.
        refused: u64,
        /// The time until the turn of the last refused send.
        wait: Duration,
    },
    /// An operation ended without a success.
    GaveUp {
        /// The attempts that were made.
        attempts: u32,
        /// Why there is no further attempt: a [`StopReason`](crate::operation::StopReason), as
        /// text.
        reason: fmt::Arguments<'a>,
        /// How the last attempt failed; `None` if the operation ended between two attempts.
        failure: Option<&'a Failure>,
    },
    /// An operation ended that took a second or more, with success or not. The parts add up to the
    /// total.
    Slow {
        /// The time from the operation's beginning to its end.
        total: Duration,
        /// How long the operation waited in line for each limit of the strategy, up to the last
        /// limit with a wait.
        in_line: &'a [Duration],
        /// How long the operation waited at a [gate](super::SendTurn::gated) behind the strategy.
        gate: Duration,
        /// How long the operation backed off.
        backoffs: Duration,
        /// The rest of the time, with attempts under way.
        sending: Duration,
        /// The attempts that were sent.
        attempts: u32,
    },
    /// An attempt has to wait for a second or more. The event comes once for each attempt.
    LongWait {
        /// The time until the attempt's turn, at today's rate.
        wait: Duration,
        /// The limit that the attempt waits for; 0 is the first.
        limit: usize,
        /// What that limit counts.
        dimension: Dimension,
        /// The state of that limit. Its [waiting](SendRateSnapshot::waiting) tokens are the tokens
        /// of the line, with this attempt's.
        rate: &'a SendRateSnapshot,
        /// Whether the attempt waits behind the line, as background.
        background: bool,
    },
    /// The quota refused a retry, after it had granted the retry before.
    QuotaExhausted {
        /// The tokens that were left.
        available: u32,
        /// The tokens that the retry costs.
        needed: u32,
    },
    /// The quota granted a retry, after it had refused the retry before.
    QuotaRecovered {
        /// The tokens that are left.
        available: u32,
    },
    /// Sends are limited from now on.
    Enabled {
        /// The state of the send rate.
        rate: &'a SendRateSnapshot,
    },
    /// A throttle lowered a send rate that limited already.
    Cut {
        /// The state of the send rate.
        rate: &'a SendRateSnapshot,
    },
    /// Sends are no longer limited.
    Recovered,
    /// A background request waits for the first time.
    BackgroundWaits,
    /// The service declares a limit that was not known, or has changed a limit.
    LimitDeclared {
        /// The limit.
        limit: &'a DeclaredLimit,
    },
    /// The service throttled although enough was left of its declared limit.
    LimitContradicted {
        /// The limit.
        limit: &'a DeclaredLimit,
    },
    /// The service's reports of a limit do not mean what they seem to mean. The limit is left alone
    /// for an hour.
    LimitGivenUp {
        /// The limit.
        limit: &'a DeclaredLimit,
    },
    /// A send rate that obeys declared limits has had several answers and no report.
    LimitsUnheard {
        /// The dimension of the limits that the send rate listens for.
        dimension: Dimension,
        /// How many reports were [ignored](crate::SendRate::ignored_reports).
        ignored: u64,
    },
}

/// Names the class of an attempt, unless it is foreground.
const fn class(background: bool) -> &'static str {
    if background { ", in background" } else { "" }
}

/// Declares how events are shown, one after the other: the message, and what `Display` adds to the
/// message. Events for `tracing` have a level, a target and fields as well.
macro_rules! events {
    ($(
        $kind:ident { $($part:ident),* } $message:literal ($($about:tt)*)
        $($level:ident $target:literal [$($field:tt)*])?;
    )+) => {
        /// The message in `tracing`, then the values of the event.
        impl fmt::Display for EventKind<'_> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.message())?;
                match *self {
                    $(Self::$kind { $($part),* } => write!(f, $($about)*),)+
                }
            }
        }

        impl EventKind<'_> {
            const fn message(&self) -> &'static str {
                match self {
                    $(Self::$kind { .. } => $message,)+
                }
            }
        }

        impl Event<'_> {
            /// Emits the event to `tracing`, if the event is for `tracing`.
            #[cfg(feature = "tracing")]
            #[expect(unused_variables, reason = "an event has fields that are not for `tracing`")]
            pub(crate) fn trace(&self) {
                match self.kind {
                    $(EventKind::$kind { $($part),* } => {$(
                        tracing::event!(
                            target: $target, tracing::Level::$level,
                            strategy = self.strategy.map(display), name = self.name,
                            $($field)* "{}", self.kind.message()
                        );
                    )?})+
                }
            }
        }
    };
}

events! {
    Sent { waited, background } "sent" (" after {waited:?} in line{}", class(background));
    Succeeded { attempts } "succeeded" (": attempts {attempts}");
    Cancelled { attempts } "cancelled" (": attempts {attempts}");
    Retrying { attempt, failure, delay } "attempt failed, retrying"
        (": attempt {attempt}, {failure}, in {delay:?}")
        DEBUG "paceline::operation" [attempt, %failure, ?delay,];
    RetryRefused { attempt, failure, reason } "retry refused"
        (": attempt {attempt}, {failure}, {reason}") DEBUG "paceline" [attempt, %failure, %reason,];
    SendRefused { wait, background } "send refused"
        (": its turn would come in {wait:?}{}", class(background))
        DEBUG "paceline" [?wait, background,];
    SendsRefused { refused, wait } "sends refused"
        (": {refused} so far, the last with its turn in {wait:?}")
        INFO "paceline" [refused, ?wait,];
    GaveUp { attempts, reason, failure } "gave up"
        (": attempts {attempts}, {reason}{}", After(failure))
        DEBUG "paceline::operation" [attempts, failure = failure.map(display), %reason,];
    Slow { total, in_line, gate, backoffs, sending, attempts } "operation took a second or more"
        (
            ": {total:?}: in line {in_line:?}, at a gate {gate:?}, in backoffs {backoffs:?}, \
             sending {sending:?}, attempts {attempts}"
        )
        INFO "paceline::operation" [?total, ?in_line, ?gate, ?backoffs, ?sending, attempts,];
    LongWait { wait, limit, dimension, rate, background } "waits for a second or more"
        (": {wait:?} for limit {limit} ({dimension}){}, {rate}", class(background))
        INFO "paceline" [?wait, limit, %dimension, background, %rate,];
    QuotaExhausted { available, needed } "retry quota exhausted"
        (": {available} left, {needed} needed") WARN "paceline" [available, needed,];
    QuotaRecovered { available } "retry quota recovered" (": {available} left")
        INFO "paceline" [available,];
    Enabled { rate } "send rate enabled" (": {rate}") WARN "paceline" [%rate,];
    Cut { rate } "send rate cut" (": {rate}") INFO "paceline" [%rate,];
    Recovered {} "send rate recovered" ("") INFO "paceline" [];
    BackgroundWaits {} "background waits for the first time" ("") INFO "paceline" [];
    LimitDeclared { limit } "limit declared" (": {limit}")
        INFO "paceline" [%limit, policy = %limit.policy,];
    LimitContradicted { limit } "declared limit contradicted" (": {limit}")
        WARN "paceline" [%limit, policy = %limit.policy,];
    LimitGivenUp { limit } "declared limit given up" (": {limit}")
        WARN "paceline" [%limit, policy = %limit.policy,];
    LimitsUnheard { dimension, ignored } "no declared limits heard"
        (": {dimension}, {ignored} reports ignored") WARN "paceline" [%dimension, ignored,];
}

/// The failure that an operation ended with, printed after the reason.
struct After<'a>(Option<&'a Failure>);

impl fmt::Display for After<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.map_or(Ok(()), |failure| write!(f, ", {failure}"))
    }
}

impl fmt::Display for Event<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.name, self.strategy) {
            (Some(name), _) => write!(f, "{name}: ")?,
            (None, Some(strategy)) => write!(f, "strategy {strategy}: ")?,
            (None, None) => {}
        }
        self.kind.fmt(f)
    }
}

impl<'a> Event<'a> {
    pub(crate) const fn new(
        strategy: Option<StrategyId>,
        name: Option<&'a str>,
        kind: EventKind<'a>,
    ) -> Self {
        Self {
            strategy,
            name,
            kind,
        }
    }
}

/// The caller's function for each event.
#[derive(Clone)]
pub(super) struct Hook(Arc<dyn Fn(&Event<'_>) + Send + Sync>);

impl Hook {
    pub(super) fn new(hook: impl Fn(&Event<'_>) + Send + Sync + 'static) -> Self {
        Self(Arc::new(hook))
    }

    /// Calls the hook, unless the thread unwinds, because a second panic would abort the process.
    pub(super) fn call(&self, event: &Event<'_>) {
        if !std::thread::panicking() {
            (self.0)(event);
        }
    }
}

impl fmt::Debug for Hook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Hook")
    }
}

#[cfg(all(test, feature = "tracing"))]
mod tests {
    use alloc::{collections::BTreeSet, string::String, vec::Vec};
    use std::sync::Mutex;

    use tracing::{
        Metadata, Subscriber,
        field::{Field, Visit},
        span::{Attributes, Id, Record},
    };

    use super::*;
    use crate::{SendRate, Timestamp, law::LimitReport};

    /// Returns an event of each kind. A new variant does not compile until it has a number here.
    fn each<'a>(
        failure: &'a Failure,
        reason: StopReason,
        rate: &'a SendRateSnapshot,
        limit: &'a DeclaredLimit,
    ) -> [EventKind<'a>; 20] {
        let (dimension, background) = (Dimension::Tokens, false);
        let wait = Duration::from_secs(7);
        let failed = Some(failure);
        let all = [
            EventKind::Sent {
                waited: wait,
                background,
            },
            EventKind::Succeeded { attempts: 1 },
            EventKind::Cancelled { attempts: 1 },
            EventKind::Retrying {
                attempt: 1,
                failure,
                delay: wait,
            },
            EventKind::RetryRefused {
                attempt: 1,
                failure,
                reason,
            },
            EventKind::SendRefused { wait, background },
            EventKind::GaveUp {
                attempts: 1,
                reason: format_args!("enough"),
                failure: failed,
            },
            EventKind::LongWait {
                wait,
                limit: 1,
                dimension,
                rate,
                background,
            },
            EventKind::QuotaExhausted {
                available: 1,
                needed: 5,
            },
            EventKind::QuotaRecovered { available: 5 },
            EventKind::Enabled { rate },
            EventKind::Cut { rate },
            EventKind::Recovered,
            EventKind::BackgroundWaits,
            EventKind::LimitDeclared { limit },
            EventKind::LimitContradicted { limit },
            EventKind::LimitGivenUp { limit },
            EventKind::LimitsUnheard {
                dimension,
                ignored: 4,
            },
            EventKind::SendsRefused { refused: 9, wait },
            EventKind::Slow {
                total: wait,
                in_line: &[],
                gate: wait,
                backoffs: wait,
                sending: wait,
                attempts: 1,
            },
        ];
        for (number, kind) in all.iter().enumerate() {
            let expected = match kind {
                EventKind::Sent { .. } => 0,
                EventKind::Succeeded { .. } => 1,
                EventKind::Cancelled { .. } => 2,
                EventKind::Retrying { .. } => 3,
                EventKind::RetryRefused { .. } => 4,
                EventKind::SendRefused { .. } => 5,
                EventKind::GaveUp { .. } => 6,
                EventKind::LongWait { .. } => 7,
                EventKind::QuotaExhausted { .. } => 8,
                EventKind::QuotaRecovered { .. } => 9,
                EventKind::Enabled { .. } => 10,
                EventKind::Cut { .. } => 11,
                EventKind::Recovered => 12,
                EventKind::BackgroundWaits => 13,
                EventKind::LimitDeclared { .. } => 14,
                EventKind::LimitContradicted { .. } => 15,
                EventKind::LimitGivenUp { .. } => 16,
                EventKind::LimitsUnheard { .. } => 17,
                EventKind::SendsRefused { .. } => 18,
                EventKind::Slow { .. } => 19,
            };
            assert_eq!(number, expected);
        }
        all
    }

    /// Keeps a row of the page for each event.
    #[derive(Clone, Default)]
    struct Rows(Arc<Mutex<Vec<String>>>);

    #[derive(Default)]
    struct Row {
        message: String,
        fields: Vec<String>,
    }

    impl Visit for Row {
        fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
            match field.name() {
                "message" => self.message = format!("{value:?}"),
                "strategy" | "name" => {}
                name => self.fields.push(format!("`{name}`")),
            }
        }
    }

    impl Subscriber for Rows {
        fn enabled(&self, _: &Metadata<'_>) -> bool {
            true
        }
        fn new_span(&self, _: &Attributes<'_>) -> Id {
            Id::from_u64(1)
        }
        fn record(&self, _: &Id, _: &Record<'_>) {}
        fn record_follows_from(&self, _: &Id, _: &Id) {}
        fn event(&self, event: &tracing::Event<'_>) {
            let (mut row, about) = (Row::default(), event.metadata());
            event.record(&mut row);
            let Row { message, fields } = row;
            let (level, target, fields) = (about.level(), about.target(), fields.join(", "));
            let row =
                format!("| {message} | {level} | `{target}` | {fields} |").replace("|  |", "| |");
            let names: Vec<_> = about.fields().iter().map(|field| field.name()).collect();
            assert!(
                names.contains(&"strategy") && names.contains(&"name"),
                "{row}"
            );
            self.0.lock().unwrap().push(row);
        }
        fn enter(&self, _: &Id) {}
        fn exit(&self, _: &Id) {}
    }

    fn limit() -> DeclaredLimit {
        let rate = SendRate::new(crate::ControlLaw::Declared, Timestamp::ZERO);
        let permit = rate
            .try_acquire(Timestamp::ZERO)
            .expect("nothing is limited yet");
        let report = LimitReport::new(60)
            .limit(100)
            .window(Duration::from_secs(60));
        rate.observe(Timestamp::ZERO, permit, &report.into());
        rate.snapshot(Timestamp::ZERO)
            .declared
            .expect("it is declared")
    }

    #[test]
    fn the_page_lists_every_event_as_it_is_emitted() {
        let rate = SendRate::new(crate::ControlLaw::Aws, Timestamp::ZERO);
        let (failure, reason) = (Failure::transient(), StopReason::NotRetryable);
        let rows = Rows::default();
        let (rate, limit) = (rate.snapshot(Timestamp::ZERO), limit());
        tracing::subscriber::with_default(rows.clone(), || {
            for kind in each(&failure, reason, &rate, &limit) {
                Event::new(Some(StrategyId::new()), Some("orders"), kind).trace();
            }
        });
        let page = include_str!("../guide/operating.md");
        let events = page
            .split("\n# ")
            .find(|section| section.starts_with("Events"));
        let listed: BTreeSet<_> = events
            .expect("a section")
            .lines()
            .filter(|line| line.starts_with("| ") && !line.starts_with("| message"))
            .map(|line| line.rsplitn(3, '|').last().expect("columns").to_owned() + "|")
            .collect();
        let emitted: BTreeSet<_> = rows.0.lock().unwrap().iter().cloned().collect();
        assert_eq!(listed, emitted);
    }

    #[test]
    fn an_event_reads_as_one_line_with_its_name_or_number() {
        let id = StrategyId::new();
        let named = Event::new(Some(id), Some("orders"), EventKind::Recovered);
        assert_eq!(named.to_string(), "orders: send rate recovered");
        let exhausted = EventKind::QuotaExhausted {
            available: 1,
            needed: 5,
        };
        let numbered = Event::new(Some(id), None, exhausted);
        let line = format!("strategy {id}: retry quota exhausted: 1 left, 5 needed");
        assert_eq!(numbered.to_string(), line);
    }
}
