//! Server-sent events that come in pieces, by "Interpreting an event stream" of the HTML standard.

use super::scan::Scan;

const FIELD: &[u8] = b"data:";

/// Where the next byte stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum At {
    /// In the name of a field, after so many bytes of `data:`.
    Name(usize),
    /// In data.
    Data,
    /// In a line without data.
    Other,
}

/// How the documents of a body are separated.
#[derive(Debug)]
pub(super) enum Framing {
    /// JSON documents, one after the other.
    Json,
    Events(Events),
    /// A body of another type, without documents.
    None,
}

#[derive(Debug)]
pub(super) struct Events {
    at: At,
    /// Whether the last byte was a carriage return, which a line feed may follow.
    returned: bool,
}

impl Framing {
    pub(super) const fn events() -> Self {
        Self::Events(Events {
            at: At::Name(0),
            returned: false,
        })
    }

    /// Hands the documents in a piece of a body on to `scan`.
    pub(super) fn feed(&mut self, piece: &[u8], scan: &mut Scan) {
        match self {
            Self::Json => scan.feed(piece),
            Self::Events(events) => events.feed(piece, scan),
            Self::None => {}
        }
    }
}

impl Events {
    fn feed(&mut self, piece: &[u8], scan: &mut Scan) {
        for lines in piece.split_inclusive(|byte| matches!(byte, b'\n' | b'\r')) {
            let (line, end) = match lines {
                [line @ .., end @ (b'\n' | b'\r')] => (line, Some(*end)),
                line => (line, None),
            };
            if self.returned && line.is_empty() && end == Some(b'\n') {
                self.returned = false;
                continue;
            }
            self.returned = end == Some(b'\r');
            self.line(line, scan);
            if end.is_some() {
                self.end_line(scan);
            }
        }
    }

    fn line(&mut self, line: &[u8], scan: &mut Scan) {
        let mut rest = line;
        while let (At::Name(met), [first, after @ ..]) = (self.at, rest) {
            self.at = match FIELD.get(met) {
                Some(byte) if byte == first && met.saturating_add(1) == FIELD.len() => At::Data,
                Some(byte) if byte == first => At::Name(met.saturating_add(1)),
                _ => At::Other,
            };
            rest = after;
        }
        if self.at == At::Data {
            scan.feed(rest);
        }
    }

    fn end_line(&mut self, scan: &mut Scan) {
        match self.at {
            // An empty line ends the event.
            At::Name(0) => scan.end(),
            At::Data => scan.feed(b"\n"),
            _ => {}
        }
        self.at = At::Name(0);
    }
}

#[cfg(test)]
mod tests {
    use super::{Framing, Scan};

    /// Reads a stream in pieces of every length, and returns its tokens of input and output.
    fn read(stream: &str) -> Option<(Option<u64>, Option<u64>)> {
        let read = |length| {
            let (mut framing, mut scan) = (Framing::events(), Scan::default());
            for piece in stream.as_bytes().chunks(length) {
                framing.feed(piece, &mut scan);
            }
            scan.end();
            scan.usage().map(|usage| (usage.input, usage.output))
        };
        let whole = read(stream.len());
        for length in 1..stream.len() {
            assert_eq!(read(length), whole, "{length} {stream:?}");
        }
        whole
    }

    #[test]
    fn events_are_told_apart() {
        let known = Some((Some(4), Some(2)));
        let streams = [
            (
                "data: {\"usage\": {\"prompt_tokens\": 4, \"completion_tokens\": 2}}\n\ndata: [DONE]\n\n",
                known,
            ),
            (
                "data:{\"usage\":\r\ndata:{\"prompt_tokens\":4,\r\ndata:\"completion_tokens\":2}}\r\n\r\n",
                known,
            ),
            (
                ": comment {\n\nevent: x\rdata: {\"usage\":{\"prompt_tokens\":4,\"completion_tokens\":2}}\r\r",
                known,
            ),
            // An event that is cut short does not spoil the next.
            (
                "data: {\"a\": \"\n\ndata: {\"usage\":{\"prompt_tokens\":4,\"completion_tokens\":2}}\n\n",
                known,
            ),
            (
                "data: [[[[\n\ndata: {\"usage\":{\"prompt_tokens\":4,\"completion_tokens\":2}}\n\n",
                known,
            ),
            ("dat: {\"usage\":{\"prompt_tokens\":4}}\n\n", None),
            ("datadata: {\"usage\":{\"prompt_tokens\":4}}\n\n", None),
            ("event: data: {\"usage\":{\"prompt_tokens\":4}}\n\n", None),
        ];
        for (stream, expected) in streams {
            assert_eq!(read(stream), expected, "{stream:?}");
        }
    }
}
