//! What error codes, bodies and errors of input and output mean, and in which order classifiers are
//! asked.

use core::{cell::RefCell, error::Error, fmt, time::Duration};
use std::io::{self, ErrorKind};

use paceline::{
    Execution, Failure, Fault, RetryAfter, RetrySafety,
    classify::{Classifier, IoErrorClassifier, aws_error_code},
};

#[test]
fn throttling_codes_are_the_fourteen() {
    for code in [
        "Throttling",
        "ThrottlingException",
        "ThrottledException",
        "RequestThrottledException",
        "TooManyRequestsException",
        "ProvisionedThroughputExceededException",
        "TransactionInProgressException",
        "RequestLimitExceeded",
        "BandwidthLimitExceeded",
        "LimitExceededException",
        "RequestThrottled",
        "SlowDown",
        "PriorRequestNotComplete",
        "EC2ThrottledException",
    ] {
        let failure = Failure::from_error_code(code);
        assert_eq!(failure, Some(Failure::throttling()), "{code}");
    }
}

#[test]
fn transient_codes_are_retried_and_are_no_timeouts() {
    let slow = Some(Failure::transient().with_fault(Fault::Client));
    assert_eq!(Failure::from_error_code("RequestTimeout"), slow);
    assert_eq!(Failure::from_error_code("RequestTimeoutException"), slow);
}

#[test]
fn codes_of_one_service_mean_nothing_elsewhere() {
    let transient = Some(Failure::transient());
    let idp = "IDPCommunicationError";
    assert_eq!(Failure::from_service_error_code("sts", idp), transient);
    assert_eq!(Failure::from_service_error_code("STS", idp), transient);
    let internal = "InternalError";
    assert_eq!(Failure::from_service_error_code("s3", internal), transient);
    for code in [idp, internal] {
        assert_eq!(Failure::from_error_code(code), None, "{code}");
        let other = Failure::from_service_error_code("dynamodb", code);
        assert_eq!(other, None, "{code}");
    }
    assert_eq!(Failure::from_service_error_code("s3", idp), None);
    assert_eq!(Failure::from_service_error_code("sts", internal), None);
    for code in ["SlowDown", "RequestTimeout", "NoSuchKey"] {
        let shared = Failure::from_error_code(code);
        assert_eq!(Failure::from_service_error_code("sts", code), shared);
    }
}

#[test]
fn failures_say_what_failed() {
    let hinted = |hint| Failure::throttling().with_retry_after(hint).to_string();
    let three = Duration::from_secs(3);
    for (failure, text) in [
        (Failure::throttling(), "throttled by the service"),
        (Failure::timeout(), "timed out"),
        (Failure::transient(), "transient server error"),
        (Failure::not_retryable(), "error; not retryable"),
        (
            Failure::not_retryable().with_fault(Fault::Client),
            "client error; not retryable",
        ),
        (
            Failure::transient().with_retry_safety(RetrySafety::Maybe),
            "server error; maybe retryable",
        ),
        (
            Failure::throttling().with_retry_safety(RetrySafety::No),
            "throttled by the service; not retryable",
        ),
    ] {
        assert_eq!(failure.to_string(), text);
    }
    assert_eq!(
        hinted(RetryAfter::AtLeast(three)),
        "throttled by the service; retry after at least 3s"
    );
    assert_eq!(
        hinted(RetryAfter::Clamped(three / 2)),
        "throttled by the service; retry after 1.5s"
    );
}

#[test]
fn failure_goes_where_errors_go() {
    fn call() -> Result<(), Box<dyn Error + Send + Sync>> {
        Err(Failure::timeout())?;
        Ok(())
    }
    let error = call().unwrap_err();
    assert_eq!(error.downcast_ref(), Some(&Failure::timeout()));
    assert!(error.source().is_none());
}

#[test]
fn other_codes_decide_nothing() {
    for code in [
        "",
        "AccessDenied",
        "slowdown",
        "SlowDown ",
        "NoSuchKey",
        "503",
    ] {
        assert_eq!(Failure::from_error_code(code), None, "{code:?}");
    }
}

#[test]
fn kinds_mean_what_their_table_says() {
    use ErrorKind::{
        AddrInUse, AddrNotAvailable, AlreadyExists, BrokenPipe, ConnectionAborted,
        ConnectionRefused, ConnectionReset, HostUnreachable, Interrupted, InvalidData,
        InvalidInput, NetworkDown, NetworkUnreachable, NotConnected, NotFound, Other, OutOfMemory,
        PermissionDenied, TimedOut, UnexpectedEof, Unsupported, WouldBlock, WriteZero,
    };
    let classify = |kind: ErrorKind| IoErrorClassifier.classify(&io::Error::from(kind));
    for kind in [ConnectionRefused, AddrInUse, AddrNotAvailable] {
        let want = Failure::transient().with_execution(Execution::NotSent);
        assert_eq!(classify(kind), Some(want), "{kind:?}");
    }
    for kind in [
        ConnectionReset,
        ConnectionAborted,
        NotConnected,
        BrokenPipe,
        UnexpectedEof,
        HostUnreachable,
        NetworkUnreachable,
        NetworkDown,
        Interrupted,
    ] {
        assert_eq!(classify(kind), Some(Failure::transient()), "{kind:?}");
        assert_eq!(Failure::transient().execution(), Execution::Maybe);
    }
    for kind in [TimedOut, WouldBlock] {
        assert_eq!(classify(kind), Some(Failure::timeout()), "{kind:?}");
    }
    for kind in [InvalidInput, PermissionDenied, Unsupported] {
        assert_eq!(classify(kind), Some(Failure::not_retryable()), "{kind:?}");
    }
    for kind in [
        NotFound,
        AlreadyExists,
        InvalidData,
        WriteZero,
        OutOfMemory,
        Other,
    ] {
        assert_eq!(classify(kind), None, "{kind:?}");
    }
}

/// An error of some client, with a cause.
#[derive(Debug)]
struct Caused(Option<Box<dyn Error + Send + Sync>>);

impl fmt::Display for Caused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("caused")
    }
}

impl Error for Caused {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.0
            .as_deref()
            .map(|cause| cause as &(dyn Error + 'static))
    }
}

fn caused(by: impl Error + Send + Sync + 'static) -> Caused {
    Caused(Some(Box::new(by)))
}

#[test]
fn names_that_do_not_resolve_are_transient() {
    use std::net::ToSocketAddrs;
    // Of Windows alone, where it says that there is no such host.
    let numbered = IoErrorClassifier.classify(&io::Error::from_raw_os_error(11_001));
    assert_eq!(numbered.is_some(), cfg!(windows));
    let want = Some(Failure::transient().with_execution(Execution::NotSent));
    // An empty label, so no server is asked.
    let real = ("a..b", 80).to_socket_addrs().map(|_| ()).unwrap_err();
    assert_eq!(IoErrorClassifier.classify(&real), want, "{real:?}");
    assert_eq!(
        IoErrorClassifier.classify_causes(&caused(real)),
        want,
        "inside"
    );
    let text = "failed to lookup address information: Try again";
    assert_eq!(IoErrorClassifier.classify(&io::Error::other(text)), want);
    for text in ["failed to lookup", "lookup address information", ""] {
        assert_eq!(IoErrorClassifier.classify(&io::Error::other(text)), None);
    }
    #[cfg(windows)]
    for code in 11_001..=11_004 {
        let error = io::Error::from_raw_os_error(code);
        assert_eq!(IoErrorClassifier.classify(&error), want, "{code}");
    }
}

/// An error with a message of several parts.
#[derive(Debug)]
struct Says(&'static [&'static str], fmt::Result);

impl fmt::Display for Says {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for part in self.0 {
            f.write_str(part)?;
        }
        self.1
    }
}

impl Error for Says {}

#[test]
fn messages_of_hyper_are_known_however_written() {
    let not_sent = Some(Failure::transient().with_execution(Execution::NotSent));
    let says = |parts, end| IoErrorClassifier.classify_causes(&caused(Says(parts, end)));
    assert_eq!(says(&["dns error"], Ok(())), not_sent);
    assert_eq!(says(&["d", "ns er", "ror: x"], Ok(())), not_sent);
    assert_eq!(says(&["dns"], Ok(())), None);
    assert_eq!(says(&["dns", "x error"], Ok(())), None);
    assert_eq!(says(&["tcp", "dns error"], Ok(())), None);
    assert_eq!(says(&["dns"], Err(fmt::Error)), None, "no panic");
}

#[test]
fn causes_are_looked_through() {
    let reset = || io::Error::from(ErrorKind::ConnectionReset);
    let transient = Some(Failure::transient());
    assert_eq!(
        IoErrorClassifier.classify_causes(&caused(caused(reset()))),
        transient
    );
    // What an `io::Error` holds is not its source: the source of that is.
    let inside = io::Error::other(caused(io::Error::other(reset())));
    assert_eq!(IoErrorClassifier.classify(&inside), transient);
    // The first kind that is known counts.
    let late = io::Error::new(ErrorKind::TimedOut, reset());
    assert_eq!(IoErrorClassifier.classify(&late), Some(Failure::timeout()));
    let hidden: &(dyn Error + 'static) = &caused(late);
    assert_eq!(IoErrorClassifier.classify(hidden), Some(Failure::timeout()));
    assert_eq!(IoErrorClassifier.classify_causes(&Caused(None)), None);
}

#[test]
fn no_more_than_sixteen_causes_are_looked_through() {
    let nested = |depth| {
        let mut error = io::Error::from(ErrorKind::TimedOut);
        for _ in 0..depth {
            error = io::Error::other(error);
        }
        IoErrorClassifier.classify(&error)
    };
    assert_eq!(nested(15), Some(Failure::timeout()));
    assert_eq!(nested(16), None);
}

#[test]
fn chain_asks_in_order_and_only_until_one_knows() {
    let asked = RefCell::new(Vec::new());
    let knows = |name: &'static str, least: u32, failure: Failure| {
        let asked = &asked;
        move |error: &u32| {
            asked.borrow_mut().push(name);
            (*error >= least).then_some(failure)
        }
    };
    let two = (
        knows("first", 3, Failure::throttling()),
        knows("second", 2, Failure::not_retryable()),
    );
    let chain = (two, knows("third", 1, Failure::timeout()));
    for (error, want, names) in [
        (3, Some(Failure::throttling()), &["first"][..]),
        (2, Some(Failure::not_retryable()), &["first", "second"]),
        (1, Some(Failure::timeout()), &["first", "second", "third"]),
        (0, None, &["first", "second", "third"]),
    ] {
        assert_eq!(chain.classify(&error), want);
        assert_eq!(asked.take(), names);
    }
}

/// A classifier of a user's own type, before and after a built-in one.
#[test]
fn types_chain_before_and_after() {
    struct Mine(RetrySafety);
    impl Classifier<io::Error> for Mine {
        fn classify(&self, _: &io::Error) -> Option<Failure> {
            Some(Failure::transient().with_retry_safety(self.0))
        }
    }
    let safety = |classifier: &dyn Classifier<io::Error>, kind: ErrorKind| {
        let failure = classifier.classify(&io::Error::from(kind));
        failure.unwrap().retry_safety()
    };
    let before = (Mine(RetrySafety::Maybe), IoErrorClassifier);
    let after = (IoErrorClassifier, Mine(RetrySafety::Maybe));
    assert_eq!(safety(&before, ErrorKind::TimedOut), RetrySafety::Maybe);
    assert_eq!(safety(&after, ErrorKind::TimedOut), RetrySafety::Yes);
    assert_eq!(safety(&after, ErrorKind::NotFound), RetrySafety::Maybe);
}

fn assert_codes(bodies: &[(&str, Option<&str>)]) {
    for (body, code) in bodies {
        assert_eq!(aws_error_code(body.as_bytes()), *code, "{body}");
    }
}

#[test]
fn xml_errors_have_their_code_on_one_of_three_ways() {
    let slow = Some("SlowDown");
    assert_codes(&[
        ("<Error><Code>SlowDown</Code></Error>", slow),
        (
            "<Error><Message>a &gt; b</Message><Code> SlowDown\n</Code>",
            slow,
        ),
        (
            "<ErrorResponse xmlns='x>y'><Error><Type>Sender</Type><Code>SlowDown</Code></Error></ErrorResponse>",
            slow,
        ),
        (
            "<Response><RequestID>1</RequestID><Errors><Error><Code>SlowDown</Code></Error></Errors></Response>",
            slow,
        ),
        (
            "\u{feff} \n<?xml version=\"1.0\"?>\n\n<!-- <Code>No</Code> --><Error ><Code a=\"/>\">SlowDown</Code>",
            slow,
        ),
        (
            "<Error><![CDATA[<Code>No</Code>]]><Code>SlowDown</Code>",
            slow,
        ),
        (
            "<Error><Empty/><Code/><Inner><Code>No</Code><Deep></Deep></Inner><Code>SlowDown</Code>",
            slow,
        ),
        (
            "<Error><Resource>/</Resource><Code>a-b_c.D9</Code>",
            Some("a-b_c.D9"),
        ),
    ]);
}

#[test]
fn xml_that_is_no_error_has_no_code() {
    assert_codes(&[
        (
            "<CopyObjectResult><Code>SlowDown</Code></CopyObjectResult>",
            None,
        ),
        (
            "<DeleteResult><Error><Code>SlowDown</Code></Error></DeleteResult>",
            None,
        ),
        ("<Code>SlowDown</Code>", None),
        ("<Error></Error><Code>SlowDown</Code>", None),
        (
            "<Errors><Error><Code>SlowDown</Code></Error></Errors>",
            None,
        ),
        ("<ErrorResponse><Code>SlowDown</Code></ErrorResponse>", None),
        (
            "<Response><Error><Code>SlowDown</Code></Error></Response>",
            None,
        ),
        (
            "<!DOCTYPE Error [<!ENTITY s 'SlowDown'>]><Error><Code>&s;</Code></Error>",
            None,
        ),
        ("<Error><Code>&#83;lowDown</Code></Error>", None),
        ("<Error><Code><b>SlowDown</b></Code></Error>", None),
        ("<Error><Code>SlowDown", None),
        ("<Error><Code", None),
        ("<Error a='><Code>SlowDown</Code></Error>", None),
        ("<Error><!-- <Code>SlowDown</Code>", None),
        ("<", None),
        ("</Error><Error><Code>SlowDown</Code>", None),
        ("text <Error><Code>SlowDown</Code></Error>", None),
    ]);
}

#[test]
fn json_errors_have_their_code_under_one_of_three_keys() {
    let code = Some("ThrottlingException");
    assert_codes(&[
        (
            r#"{"__type":"com.amazon#ThrottlingException","message":"}"}"#,
            code,
        ),
        (
            r#" {"message": "a \"}\" b\\", "code": "ThrottlingException:http://x/#y"}"#,
            code,
        ),
        (r#"{"code":"ThrottlingException:http://x/"}"#, code),
        (r#"{"Code" : "ThrottlingException" , "n": 1}"#, code),
        (
            r#"{"code":"Other","Code":"Third","__type":"ThrottlingException"}"#,
            code,
        ),
        (
            r#"{"x":{"code":"No","y":["code","No"]},"code":"ThrottlingException"}"#,
            code,
        ),
        (r#"{"code":429,"Code":"ThrottlingException"}"#, code),
        (r#"{"message":"\\\"","code":"ThrottlingException"}"#, code),
    ]);
}

#[test]
fn json_that_is_no_error_has_no_code() {
    assert_codes(&[
        ("{}", None),
        (r#"{"message":"code","x":["code","SlowDown"]}"#, None),
        (r#"{"x":{"code":"SlowDown"}}"#, None),
        (r#"{"code":["SlowDown"]}"#, None),
        (r#"{"code":{"message":"Oops"}}"#, None),
        (r#"{"code":{"code":"SlowDown"}}"#, None),
        (r#"{"code":null}"#, None),
        (r#"{"code":""}"#, None),
        (r#"{"code":"Slow Down"}"#, None),
        (r#"{"code":"Slow\u0044own"}"#, None),
        (r#"{"code":"SlowDown""#, None),
        (r#"{"code":"SlowDown"#, None),
        (r#"["code","SlowDown"]"#, None),
        (r#""code""#, None),
        ("", None),
        ("   ", None),
    ]);
}

#[test]
fn codes_are_of_one_to_128_bytes() {
    let json = |length: usize| format!(r#"{{"code":"{}"}}"#, "x".repeat(length));
    for (length, fits) in [(0, false), (1, true), (128, true), (129, false)] {
        let body = json(length);
        let code = aws_error_code(body.as_bytes());
        assert_eq!(code.map(str::len), fits.then_some(length));
    }
    assert_eq!(aws_error_code(b"<Error><Code>\xff</Code></Error>"), None);
}

/// Depth costs nothing: neither stack nor more than one pass.
#[test]
fn deep_bodies_are_read_in_one_pass() {
    let (open, close) = ("<x>".repeat(100_000), "</x>".repeat(100_000));
    let body = format!("<Error>{open}{close}<Code>SlowDown</Code></Error>");
    assert_eq!(aws_error_code(body.as_bytes()), Some("SlowDown"));
    let (open, close) = ("[".repeat(100_000), "]".repeat(100_000));
    let body = format!(r#"{{"x":{open}{close},"code":"SlowDown"}}"#);
    assert_eq!(aws_error_code(body.as_bytes()), Some("SlowDown"));
}
