//! What errors say: what happened, once. A message is whole, so an error has a source only where
//! the message leaves that out: the error of the operation itself.

use alloc::string::ToString;
use alloc::sync::Arc;
use core::error::Error;
use core::time::Duration;
use std::io;

use paceline::{
    AcquireError, Adaptive, Failure, Fault, Operation, RetryAfter, RetryStrategy, SendRate,
    SendSet, Standard, Timestamp, WeightError,
    aws_config::{
        ConfigError, ConfigFault, ProfileFile, ProfileFileKind, SettingFault, SettingOrigin,
    },
    config::{SettingsError, StrategyBuilder},
    law::PacedSettings,
    operation::{NotSending, StopReason},
    pool::PoolError,
    scope::ScopeRefused,
    set::SetError,
    strategy::{ForeignToken, InitialTokenRefused, NotAdmitted, RetryRefused},
};

const SECOND: Duration = Duration::from_secs(1);

/// Returns the messages of an error and of its causes.
fn said(error: &(dyn Error + 'static)) -> Vec<String> {
    let (mut said, mut next) = (Vec::new(), Some(error));
    while let Some(error) = next {
        said.push(error.to_string());
        next = error.source();
    }
    said
}

fn profile_error() -> paceline::aws_config::ProfileFileError {
    ProfileFile::parse(ProfileFileKind::Config, "config", "a = 1").unwrap_err()
}

#[test]
fn messages_are_whole_and_have_no_second_source() {
    let weight = WeightError::AboveCapacity {
        weight: 8,
        capacity: 2,
    };
    let zero = SettingsError::ZeroMaxAttempts;
    let gone = io::Error::other("no such disk");
    let unreadable = ConfigError::from(ConfigFault::Unreadable {
        file: "config".into(),
        error: gone,
    });
    let origin = SettingOrigin::Variable("AWS_RETRY_MODE");
    let (value, fault) = ("fast".to_owned(), SettingFault::UnknownMode);
    let rates = SendSet::of(Vec::<&SendRate>::new()).unwrap_err();
    let max = StopReason::MaxAttempts { max: 3 };
    let asked = "the request asks for 8 tokens, and the bucket holds 2 at most";
    let settings = "max_attempts must be at least 1: it counts the first send";
    let foreign = Standard::new().acquire_initial_token(None).unwrap();
    let errors: [(&str, Box<dyn Error>); 17] = [
        (asked, Box::new(weight)),
        (asked, Box::new(AcquireError::Weight(weight))),
        (
            "limit 0: the request asks for 8 tokens, and the bucket holds 2 at most",
            Box::new(NotAdmitted::from(AcquireError::Weight(weight))),
        ),
        (
            "limit 1: the request asks for 8 tokens, and the bucket holds 2 at most",
            Box::new(SetError::Limit {
                limit: 1,
                error: weight.into(),
            }),
        ),
        (
            "limit 1: not in time: the send rate asks for a wait of 1s",
            Box::new(SetError::Limit {
                limit: 1,
                error: AcquireError::NotInTime { wait: SECOND },
            }),
        ),
        ("0 rates: a set has one to 8", Box::new(rates)),
        (
            "not in time: the send rate asks for a wait of 1s",
            Box::new(AcquireError::NotInTime { wait: SECOND }),
        ),
        (
            "the send rate asks for a wait of 1s",
            Box::new(NotAdmitted::Refused { wait: SECOND }),
        ),
        ("all 3 attempts made", Box::new(RetryRefused::new(max))),
        (
            "no initial token: the operation may be sent once",
            Box::new(InitialTokenRefused),
        ),
        (
            "the token was issued by another strategy",
            Box::new(ForeignToken(foreign)),
        ),
        (
            "an outcome was reported while no attempt was under way",
            Box::new(NotSending),
        ),
        (settings, Box::new(zero)),
        (
            "the scope's settings: max_attempts must be at least 1: it counts the first send",
            Box::new(ScopeRefused::Settings(zero)),
        ),
        ("config: no such disk", Box::new(unreadable)),
        (
            "config:1: a property outside of a section",
            Box::new(ConfigError::from(ConfigFault::File(profile_error()))),
        ),
        (
            "AWS_RETRY_MODE: \"fast\": not one of standard, adaptive, legacy",
            Box::new(ConfigError::from(ConfigFault::Setting {
                origin,
                value,
                fault,
            })),
        ),
    ];
    for (message, error) in errors {
        assert_eq!(said(&*error), [message]);
    }
}

/// Runs an operation that fails each time, and returns what its error says.
fn ended(strategy: StrategyBuilder<Standard>, failure: Failure) -> Vec<String> {
    let strategy = strategy.build().unwrap();
    let operation = Operation::new(&strategy).sleep_by(drop);
    said(&operation.run(|_| Err::<(), _>(failure)).unwrap_err())
}

#[test]
fn the_end_of_an_operation_is_said_once_and_then_its_own_error() {
    let (transient, failed) = (Failure::transient(), "transient server error");
    let three = ended(Standard::builder(), transient);
    assert_eq!(three, ["all 3 attempts failed", failed]);
    let one = ended(Standard::builder().max_attempts(1), transient);
    assert_eq!(one, ["the only attempt failed", failed]);
    let refused = Failure::not_retryable().with_fault(Fault::Client);
    let end = "stopped after 1 attempt: the failure is not retryable";
    let fatal = ended(Standard::builder(), refused);
    assert_eq!(fatal, [end, "client error; not retryable"]);
    let poor = Standard::builder().quota_capacity(20);
    let end = "stopped after 2 attempts: retry quota exhausted: 6 available, 14 needed";
    assert_eq!(ended(poor, transient), [end, failed]);
    let hour = RetryAfter::AtLeast(3_600 * SECOND);
    let hinted = ended(Standard::builder(), transient.with_retry_after(hour));
    let end = "stopped after 1 attempt: the service asked for a wait of 3600s, and 60s is the \
               longest accepted";
    assert_eq!(
        hinted,
        [end, "transient server error; retry after at least 3600s"]
    );
}

#[test]
fn what_is_not_sent_says_so() {
    let strategy = Adaptive::builder().paced(PacedSettings::fixed(1, 10 * SECOND).unwrap());
    let strategy = strategy.clock(Arc::new(Timestamp::ZERO)).fail_fast(true);
    let strategy = strategy.build().unwrap();
    let run = || Operation::new(&strategy).run(|_| Ok::<_, Failure>(()));
    assert!(run().is_ok());
    let end = said(&run().unwrap_err());
    let [message] = &end[..] else {
        panic!("{end:?}");
    };
    assert!(
        message.starts_with("not sent: the send rate asks for a wait of 10.0"),
        "{message}"
    );
}

#[test]
fn messages_of_pools_name_the_member() {
    let errors: [(&str, Box<dyn Error>); 5] = [
        (
            "9 members: a pool of this type has one to 8",
            Box::new(PoolError::<AcquireError>::Members { given: 9, most: 8 }),
        ),
        (
            "members 0 and 2 are one limiter",
            Box::new(PoolError::<AcquireError>::Twice { members: [0, 2] }),
        ),
        (
            "no member is chosen",
            Box::new(PoolError::<AcquireError>::NotChosen),
        ),
        (
            "every member is shut, paused or spent: a wait of 1s",
            Box::new(PoolError::<AcquireError>::Spent { wait: SECOND }),
        ),
        (
            "member 1: limit 0: not in time: the send rate asks for a wait of 1s",
            Box::new(PoolError::Member {
                index: 1,
                error: SetError::Limit {
                    limit: 0,
                    error: AcquireError::NotInTime { wait: SECOND },
                },
            }),
        ),
    ];
    for (message, error) in errors {
        assert_eq!(said(&*error), [message]);
    }
}
