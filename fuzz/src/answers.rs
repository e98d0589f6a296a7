//! `answers`: error codes in bodies of any text, against what was put in.

use arbitrary::{Arbitrary, Unstructured};
use http::{HeaderMap, StatusCode};
use paceline::classify::{BodyRefusals, HttpResponseParts, RefusalClassifier, aws_error_code};

/// What refusals say for people.
const WORDS: [&str; 32] = [
    "limit",
    "Limit 0",
    "quota: 0",
    "requested",
    "Requested 7",
    "request of",
    "tokens",
    "per",
    "PerDay",
    "a",
    "daily",
    "month",
    "5 hours",
    "24h",
    "1.5s",
    "$9",
    "3,000",
    "until",
    "1620286253180",
    "again in",
    "wait",
    "too many requests",
    "rate limit",
    "exceeded",
    "usage limit",
    "window_minutes",
    "duration_s",
    "left",
    "/",
    "\\n",
    "\"",
    "99999999999999999999",
];

#[derive(Arbitrary, Debug)]
enum Input {
    Bytes(Vec<u8>),
    Xml {
        way: Way,
        code: Text,
        before: Vec<Noise>,
        cut: Option<u8>,
    },
    Json {
        members: Vec<Member>,
        cut: Option<u8>,
    },
}

/// From the root to the error.
#[derive(Arbitrary, Debug)]
enum Way {
    Plain,
    Query,
    Ec2,
    Wrong,
}

#[derive(Arbitrary, Debug)]
enum Noise {
    Comment,
    Element(Text),
    Nested(u8, Text),
    Empty,
    Attribute,
}

#[derive(Arbitrary, Debug)]
enum Member {
    Type(Text),
    Code(Text),
    Capital(Text),
    Other(Text),
    Number(i64),
    Nested(u8, Text),
}

/// Text without the characters that mean something in the formats.
#[derive(Arbitrary, Debug)]
struct Text(Vec<u8>);

/// Reads what `data` encodes.
///
/// # Panics
///
/// Panics if what is read is not what was put in.
pub fn answers(data: &[u8]) {
    let Ok(input) = Input::arbitrary(&mut Unstructured::new(data)) else {
        return;
    };
    match input {
        Input::Bytes(bytes) => {
            check_any(&bytes);
            check_refusal(&bytes);
            let words = bytes.iter().take(48);
            let words = words.map(|byte| WORDS[usize::from(byte % 32)]);
            check_refusal(words.collect::<Vec<_>>().join(" ").as_bytes());
        }
        Input::Xml {
            way,
            code,
            before,
            cut,
        } => {
            let (head, tail) = way.tags();
            let noise: String = before.iter().map(Noise::text).collect();
            let body = format!("{head}{noise}<Code>{}</Code>{tail}", code.text());
            let want = code.code().filter(|_| !matches!(way, Way::Wrong));
            check(&body, cut, want.as_deref());
        }
        Input::Json { members, cut } => {
            let texts: Vec<String> = members.iter().map(Member::text).collect();
            let body = format!("{{{}}}", texts.join(" , "));
            check(&body, cut, best(&members).as_deref());
        }
    }
}

/// A refusal of any text is one, and space before the text changes nothing.
fn check_refusal(body: &[u8]) {
    let none = HeaderMap::new();
    let read = |body: &[u8]| {
        let parts = HttpResponseParts::new(StatusCode::TOO_MANY_REQUESTS, &none);
        let parts = parts.with_local_time(core::time::Duration::ZERO);
        RefusalClassifier::new().read(&parts.with_refusal(body))
    };
    let read_so = read(body);
    assert!(read_so.is_some());
    if !body.starts_with(b"\xef\xbb\xbf") {
        assert_eq!(read(&[b" \n", body].concat()), read_so);
    }
}

/// Of any bytes only this is known: a code is a part of them, and space before them changes
/// nothing.
fn check_any(bytes: &[u8]) {
    let code = aws_error_code(bytes);
    for reader in [
        BodyRefusals::GraphQl,
        BodyRefusals::ElasticsearchBulk,
        BodyRefusals::SqsBatch,
    ] {
        if let Some(read) = reader.read(bytes) {
            assert!(read.refused <= read.items && read.again.len() <= bytes.len());
        }
    }
    if let Some(code) = code {
        assert!((1..=128).contains(&code.len()), "{code}");
        assert!(
            bytes
                .windows(code.len())
                .any(|part| part == code.as_bytes())
        );
    }
    if !bytes.starts_with(b"\xef\xbb\xbf") {
        assert_eq!(aws_error_code(&[b" \n", bytes].concat()), code);
    }
}

/// A body has its code; one that ends too early has that or none.
fn check(body: &str, cut: Option<u8>, want: Option<&str>) {
    let got = aws_error_code(body.as_bytes());
    assert_eq!(got, want, "{body}");
    if let Some(cut) = cut {
        let part = &body.as_bytes()[..usize::from(cut) % body.len()];
        let got = aws_error_code(part);
        assert!(got.is_none() || got == want, "{body} until {cut}");
        check_any(part);
    }
}

/// The code of an object: the first that is one, under the key that comes first.
fn best(members: &[Member]) -> Option<String> {
    let of = |rank: u8| {
        let codes = members
            .iter()
            .filter_map(move |member| match (rank, member) {
                (0, Member::Type(text)) | (1, Member::Code(text)) | (2, Member::Capital(text)) => {
                    text.code()
                }
                _ => None,
            });
        codes.into_iter().next()
    };
    (0..3).find_map(of)
}

impl Way {
    fn tags(&self) -> (&'static str, &'static str) {
        match self {
            Self::Plain => ("<?xml version=\"1.0\"?>\n<Error>", "</Error>"),
            Self::Query => ("<ErrorResponse x='>'><Error>", "</Error></ErrorResponse>"),
            Self::Ec2 => ("<Response><Errors><Error>", "</Error></Errors></Response>"),
            Self::Wrong => ("<Result><Error>", "</Error></Result>"),
        }
    }
}

impl Noise {
    fn text(&self) -> String {
        match self {
            Self::Comment => "<!-- <Code>No</Code> </Error> -->".to_owned(),
            Self::Element(text) => format!("<Message>{}</Message>", text.text()),
            Self::Nested(depth, text) => {
                let depth = usize::from(*depth);
                let (open, close) = ("<Error>".repeat(depth), "</Error>".repeat(depth));
                format!("<x>{open}<Code>{}</Code>{close}</x>", text.text())
            }
            Self::Empty => "<Code/><Code />".to_owned(),
            Self::Attribute => "<x a=\"</Error><Code>No</Code>\" b='\">'/>".to_owned(),
        }
    }
}

impl Member {
    fn text(&self) -> String {
        match self {
            Self::Type(text) => format!(r#""__type": "name#{}""#, text.text()),
            Self::Code(text) => format!(r#""code":"{}:http://x/#y""#, text.text()),
            Self::Capital(text) => format!(r#""Code" :"{}""#, text.text()),
            Self::Other(text) => format!(r#""message":"}}\\\"{}\\""#, text.text()),
            Self::Number(number) => format!(r#""code":{number}"#),
            Self::Nested(depth, text) => {
                let depth = usize::from(*depth);
                let (open, close) = (r#"{"code":["#.repeat(depth), "]}".repeat(depth));
                format!(r#""x":{{"code":{open}"{}"{close}}}"#, text.text())
            }
        }
    }
}

impl Text {
    fn text(&self) -> String {
        let plain = self.0.iter().map(|byte| char::from(byte % 128));
        plain
            .filter(|c| (' '..='~').contains(c) && !"<>\"\\#:;,=".contains(*c))
            .collect()
    }

    /// The error code that the text is, if it is one.
    fn code(&self) -> Option<String> {
        let text = self.text();
        let code = text.trim_matches(' ');
        let is_code = code
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || "._-".contains(c));
        (is_code && (1..=128).contains(&code.len())).then(|| code.to_owned())
    }
}
