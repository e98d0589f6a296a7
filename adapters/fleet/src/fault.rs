//! What may be wrong: with what a caller set, and with the engine.

use core::{error::Error, fmt, time::Duration};

/// What is wrong with the engine, or was when it was last asked.
///
/// # Examples
///
/// ```
/// use paceline_fleet::EngineFault;
///
/// assert_eq!(EngineFault::OutOfMemory.to_string(), "the engine is out of memory");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum EngineFault {
    /// There is no connection: refused, reset, no such host. A file has
    /// no folder, or its disk fails.
    Unreachable,
    /// No answer in time. Of a file: other processes had it locked.
    TimedOut,
    /// It wants other credentials, or they do not allow what is needed.
    Unauthorized,
    /// It has no memory left to write to.
    OutOfMemory,
    /// It does not take writes: a replica, a server whose disk is full, a cluster that is down; a
    /// file or its folder that this process may not write.
    ReadOnly,
    /// The disk of the file is full.
    DiskFull,
    /// The file is damaged, or not a fleet's. A file that this process has used before is put aside
    /// as `PATH.damaged`, and made anew. Any other is left as it is: delete it, or choose another
    /// path.
    Corrupt,
    /// The file was written by a version of this crate that does not go with this one. It is left
    /// as it is: choose another path.
    OtherVersion,
    /// The machine's clock went back, by more than a second. The file's time goes on where it was,
    /// so that no pause gets longer or shorter. The next ask is answered.
    ClockJumped,
    /// It is reading its data, or failing over.
    NotReady,
    /// It is a node of a cluster, which the client here does not follow. The address of a single
    /// engine, or of a proxy, is needed.
    Cluster,
    /// It is a Sentinel, which the client here does not follow. The address of the engine is
    /// needed, or that of a proxy that moves with it.
    Sentinel,
    /// It does not know a command that the scripts need: renamed, disabled, or too old.
    NoCommand,
    /// TLS does not come about: one side refuses the other's certificate, which is unknown, has
    /// expired, or does not go with its key.
    Certificate,
    /// It answers, and does not know a member that it knew: it was emptied. Nothing was granted.
    Forgets,
    /// It answers, and has granted nothing for a second to a member whose requests wait: the share
    /// is less than a token a second, the service asked for a pause, or another program clears the
    /// engine.
    GrantsNothing,
    /// The member's task has ended: its runtime was dropped, or it panicked.
    TaskEnded,
    /// A key holds what the fleet did not write, or the answer is not one of the script. Nothing
    /// was granted.
    Broken,
    /// Anything else.
    Other,
}

impl fmt::Display for EngineFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Unreachable => "the engine cannot be reached",
            Self::TimedOut => "the engine did not answer in time",
            Self::Unauthorized => "the engine refuses these credentials",
            Self::OutOfMemory => "the engine is out of memory",
            Self::ReadOnly => "the engine takes no writes",
            Self::DiskFull => "the disk of the engine's file is full",
            Self::Corrupt => "the engine's file is damaged, or not a fleet's",
            Self::OtherVersion => "the engine's file or scope was written by another version",
            Self::ClockJumped => "the machine's clock went back",
            Self::NotReady => "the engine is not ready",
            Self::Cluster => {
                "the engine is a node of a cluster; it has to be a single engine or a proxy"
            }
            Self::Sentinel => {
                "the address is that of a Sentinel; it has to be the engine's, or a proxy's"
            }
            Self::NoCommand => "the engine does not know a command that is needed",
            Self::Certificate => "the engine or this client refuses a certificate",
            Self::Forgets => "the engine has forgotten this member",
            Self::GrantsNothing => "the engine answers, and grants nothing",
            Self::TaskEnded => "the member's task has ended",
            Self::Broken => "the engine holds or answers what is not the fleet's",
            Self::Other => "the engine reports an error",
        })
    }
}

impl Error for EngineFault {}

impl EngineFault {
    /// Returns the fault for the code that an error reply begins with.
    pub(crate) fn of_code(code: &str) -> Self {
        match code {
            "NOAUTH" | "WRONGPASS" | "NOPERM" => Self::Unauthorized,
            "OOM" => Self::OutOfMemory,
            "READONLY" | "MISCONF" | "CLUSTERDOWN" | "NOREPLICAS" => Self::ReadOnly,
            "LOADING" | "MASTERDOWN" | "BUSY" | "TRYAGAIN" => Self::NotReady,
            "MOVED" | "ASK" | "CROSSSLOT" => Self::Cluster,
            "VERSION" => Self::OtherVersion,
            "BROKEN" | "WRONGTYPE" | "STALE" => Self::Broken,
            _ => Self::Other,
        }
    }

    /// Returns the fault that a text without a code names.
    fn of_text(text: &str) -> Self {
        let text = text.to_ascii_lowercase();
        let says = |words: &[&str]| words.iter().any(|word| text.contains(word));
        if says(&["no permission", "acl failure", "can't run this command"]) {
            Self::Unauthorized
        } else if says(&["unknown command", "unknown redis command"]) {
            Self::NoCommand
        } else if says(&["certificate", "fatal alert", "tls parameters"]) {
            Self::Certificate
        } else {
            Self::Other
        }
    }

    /// Returns the fault that an error of the client is. Its text, which may quote a server, is not
    /// kept.
    pub(crate) fn of(error: &redis::RedisError) -> Self {
        if error.is_timeout() {
            return Self::TimedOut;
        }
        if let redis::ErrorKind::AuthenticationFailed = error.kind() {
            return Self::Unauthorized;
        }
        if error.is_io_error() || error.is_connection_dropped() || error.is_connection_refusal() {
            return match Self::of_text(&error.to_string()) {
                Self::Certificate => Self::Certificate,
                _ => Self::Unreachable,
            };
        }
        if let Some(code) = error.code() {
            return match Self::of_code(code) {
                Self::Other => Self::of_text(&error.to_string()),
                fault => fault,
            };
        }
        match error.kind() {
            redis::ErrorKind::UnexpectedReturnType | redis::ErrorKind::Parse => Self::Broken,
            _ => Self::of_text(&error.to_string()),
        }
    }

    /// Returns `true` if the connection may be used again after it.
    ///
    /// An engine that takes no writes, or is not ready, may have been replaced: the address may
    /// lead to another one now.
    pub(crate) const fn keeps_connection(self) -> bool {
        matches!(
            self,
            Self::OutOfMemory | Self::Broken | Self::Forgets | Self::Other
        )
    }
}

/// A setting that is out of its range, or an address that is none.
///
/// # Examples
///
/// ```
/// use paceline_fleet::{Fleet, FleetError};
///
/// assert_eq!(Fleet::open("cache:6379").unwrap_err(), FleetError::Address);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FleetError {
    /// The path is empty, or the address is not one that the client knows: `redis://`, `rediss://`,
    /// `unix://`.
    ///
    /// It is not repeated here: it may hold a password.
    Address,
    /// The address is one of `rediss://`, and this crate was built without its feature `tls`.
    NoTls,
    /// A weight outside 1 to 1,000.
    #[non_exhaustive]
    Weight {
        /// What was given.
        weight: u32,
    },
    /// Certificates or a key that are not PEM, do not fit, or an address without TLS (`rediss://`).
    Certificate,
    /// A namespace or a scope that is empty, longer than 256 bytes, or has control characters.
    #[non_exhaustive]
    Name {
        /// Which one.
        setting: &'static str,
    },
    /// A rate outside one token in 1,000 s to 10⁹ tokens/s.
    #[non_exhaustive]
    Rate {
        /// Which one.
        setting: &'static str,
        /// So many tokens ...
        tokens: u32,
        /// ... in this time.
        per: Duration,
    },
    /// A rate above the allowance.
    #[non_exhaustive]
    AboveAllowance {
        /// Which one.
        setting: &'static str,
    },
    /// A time outside its range.
    #[non_exhaustive]
    Span {
        /// Which one.
        setting: &'static str,
        /// What was given.
        given: Duration,
        /// The shortest that is allowed.
        least: Duration,
        /// The longest that is allowed.
        most: Duration,
    },
    /// A retry budget of no tokens, or more than 10⁹.
    #[non_exhaustive]
    Capacity {
        /// What was given.
        tokens: u32,
    },
    /// Two budgets of a set that are one member.
    SameBudget,
    /// There is no tokio runtime to run the background task.
    NoRuntime,
    /// The engine cannot be used: only [`Fleet::connect`](crate::Fleet::connect) says so.
    #[non_exhaustive]
    Engine {
        /// What is wrong with it.
        fault: EngineFault,
    },
}

impl fmt::Display for FleetError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Address => f.write_str("the engine's address is not one the client knows"),
            Self::NoTls => f.write_str("rediss:// needs the feature `tls` of paceline-fleet"),
            Self::Name { setting } => write!(
                f,
                "the {setting} is empty, longer than 256 bytes, or has control characters"
            ),
            Self::Rate {
                setting,
                tokens,
                per,
            } => write!(
                f,
                "the {setting} of {tokens} tokens in {per:?} is not between one in 1000 s and one in 1 ns"
            ),
            Self::AboveAllowance { setting } => write!(f, "the {setting} is above the allowance"),
            Self::Span {
                setting,
                given,
                least,
                most,
            } => {
                write!(
                    f,
                    "the {setting} of {given:?} is not between {least:?} and {most:?}"
                )
            }
            Self::Capacity { tokens } => {
                write!(
                    f,
                    "a retry budget of {tokens} tokens is not between 1 and 1000000000"
                )
            }
            Self::SameBudget => f.write_str("two budgets of the set are one member"),
            Self::Weight { weight } => {
                write!(f, "the weight of {weight} is not between 1 and 1000")
            }
            Self::Certificate => f.write_str(
                "the certificates or the key are not PEM, or the address is not one of rediss://",
            ),
            Self::NoRuntime => f.write_str("there is no tokio runtime here"),
            Self::Engine { fault } => fault.fmt(f),
        }
    }
}

impl Error for FleetError {}

#[cfg(test)]
mod tests {
    use std::io;

    use redis::{ErrorKind, RedisError};

    use super::{EngineFault, FleetError};

    #[test]
    fn an_error_of_the_client_is_a_fault() {
        let of = |error: RedisError| EngineFault::of(&error);
        let lost = io::Error::from(io::ErrorKind::InvalidInput);
        assert_eq!(of(lost.into()), EngineFault::Unreachable);
        let late = io::Error::from(io::ErrorKind::TimedOut);
        assert_eq!(of(late.into()), EngineFault::TimedOut);
        for (kind, fault) in [
            (ErrorKind::AuthenticationFailed, EngineFault::Unauthorized),
            (ErrorKind::UnexpectedReturnType, EngineFault::Broken),
            (ErrorKind::Parse, EngineFault::Broken),
            (ErrorKind::Client, EngineFault::Other),
        ] {
            assert_eq!(of((kind, "said").into()), fault, "{kind:?}");
        }
    }

    #[test]
    fn an_error_says_what_is_wrong_with_which_setting() {
        let weight = FleetError::Weight { weight: 0 };
        assert_eq!(
            weight.to_string(),
            "the weight of 0 is not between 1 and 1000"
        );
        let fault = EngineFault::TimedOut;
        let text = "the engine did not answer in time";
        assert_eq!(FleetError::Engine { fault }.to_string(), text);
    }

    #[test]
    fn every_code_of_an_engine_that_is_away_has_its_fault() {
        let codes = [
            ("NOAUTH", EngineFault::Unauthorized),
            ("WRONGPASS", EngineFault::Unauthorized),
            ("NOPERM", EngineFault::Unauthorized),
            ("OOM", EngineFault::OutOfMemory),
            ("READONLY", EngineFault::ReadOnly),
            ("NOREPLICAS", EngineFault::ReadOnly),
            ("LOADING", EngineFault::NotReady),
            ("MOVED", EngineFault::Cluster),
            ("WRONGTYPE", EngineFault::Broken),
            ("BROKEN", EngineFault::Broken),
            ("ERR", EngineFault::Other),
        ];
        for (code, fault) in codes {
            assert_eq!(EngineFault::of_code(code), fault, "{code}");
        }
    }

    #[test]
    fn a_text_without_a_code_is_a_fault_as_well() {
        let texts = [
            (
                "ERR ACL failure in script: User worker has no permissions",
                EngineFault::Unauthorized,
            ),
            (
                "ERR The user executing the script can't run this command or subcommand",
                EngineFault::Unauthorized,
            ),
            (
                "ERR unknown command 'EVALSHA', with args",
                EngineFault::NoCommand,
            ),
            (
                "Unknown Redis command called from script",
                EngineFault::NoCommand,
            ),
            (
                "Unable to build client with TLS parameters",
                EngineFault::Certificate,
            ),
            (
                "received fatal alert: CertificateExpired",
                EngineFault::Certificate,
            ),
            ("ERR something", EngineFault::Other),
        ];
        for (text, fault) in texts {
            assert_eq!(EngineFault::of_text(text), fault, "{text}");
        }
    }

    #[test]
    fn a_connection_is_kept_after_what_the_engine_itself_said() {
        let kept = |fault: EngineFault| fault.keeps_connection();
        assert!(kept(EngineFault::OutOfMemory) && kept(EngineFault::Broken));
        assert!(!kept(EngineFault::TimedOut) && !kept(EngineFault::Unreachable));
    }

    #[test]
    fn a_connection_to_a_replaced_engine_is_dropped() {
        for code in ["READONLY", "MASTERDOWN", "LOADING", "MOVED", "CLUSTERDOWN"] {
            let fault = EngineFault::of_code(code);
            assert!(!fault.keeps_connection(), "{code}");
        }
    }
}
