//! A scanner for JSON that comes in pieces: it keeps a few numbers, and never the text.
//!
//! It checks no grammar. Text that is no JSON may lead to a wrong usage or to none.

/// The most tokens of one kind that a usage may say. More tokens are not plausible, and would hold
/// back all requests for hours.
const MOST: u64 = 10_000_000;
/// One byte more than the longest key that matters, `cache_creation_input_tokens`.
const KEY: usize = 28;
/// The shortest string of a file or a picture, in bytes. A shorter string is text.
const ATTACHED: u64 = 256;

/// The meaning of a key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Key {
    #[default]
    Other,
    /// Holds the usage.
    Usage,
    /// May hold the usage of the whole response.
    Holder,
    /// May hold the usage that is known when the response begins.
    Begun,
    /// Holds text that was generated.
    Text,
    /// Holds a file, a picture or its address.
    Attached,
    /// Holds settings of the request.
    Settings,
    /// The most tokens that are to be generated.
    MaxOutput,
    /// How many answers are to be generated.
    Answers,
    Count(Count),
}

/// A number in a usage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Count {
    Input,
    /// Input that Anthropic counts beside `input_tokens`.
    CacheWrite,
    Output,
    /// Output that Gemini counts beside `candidatesTokenCount`.
    Thoughts,
    Total,
}

impl Key {
    fn of(key: &[u8]) -> Self {
        match key {
            b"usage" | b"usageMetadata" => Self::Usage,
            b"response" | b"x_groq" => Self::Holder,
            b"message" => Self::Begun,
            b"content" | b"text" | b"delta" | b"arguments" | b"partial_json" | b"thinking"
            | b"reasoning" | b"reasoning_content" => Self::Text,
            b"data" | b"url" | b"file_data" | b"image_url" => Self::Attached,
            b"generationConfig" | b"inferenceConfig" => Self::Settings,
            b"max_tokens"
            | b"max_completion_tokens"
            | b"max_output_tokens"
            | b"maxOutputTokens"
            | b"maxTokens" => Self::MaxOutput,
            b"n" | b"candidateCount" => Self::Answers,
            b"prompt_tokens" | b"input_tokens" | b"promptTokenCount" | b"inputTokens" => {
                Self::Count(Count::Input)
            }
            b"cache_creation_input_tokens" | b"cacheWriteInputTokens" => {
                Self::Count(Count::CacheWrite)
            }
            b"completion_tokens" | b"output_tokens" | b"candidatesTokenCount" | b"outputTokens" => {
                Self::Count(Count::Output)
            }
            b"thoughtsTokenCount" => Self::Count(Count::Thoughts),
            b"total_tokens" | b"totalTokenCount" | b"totalTokens" => Self::Count(Count::Total),
            _ => Self::Other,
        }
    }
}

/// The numbers of a usage, as far as they have been read.
#[derive(Clone, Copy, Debug, Default)]
struct Numbers {
    input: Option<u64>,
    cache_write: Option<u64>,
    output: Option<u64>,
    thoughts: Option<u64>,
    total: Option<u64>,
}

/// The usage that a response reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Usage {
    pub(super) input: Option<u64>,
    /// `None` if the response has only begun.
    pub(super) output: Option<u64>,
}

/// The state of the scan.
#[derive(Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is a separate switch")]
pub(super) struct Scan {
    depth: u32,
    /// Whether the outermost bracket is an array's.
    in_array: bool,
    in_string: bool,
    escaped: bool,
    key: [u8; KEY],
    /// The number of bytes of the string so far. The first bytes are in `key`.
    length: u64,
    /// The key that was read last, if there is no colon yet.
    next: Key,
    /// The key of the next value.
    of: Key,
    /// The keys of the outermost objects.
    path: [Key; 4],
    /// The depth inside the usage, 0 outside.
    usage: u32,
    number: Option<u64>,
    numbers: Numbers,
    /// Whether the output is of a response that has only begun.
    begun: bool,
    wrong: bool,
    text: u64,
    attached: u64,
    attachments: u64,
    max_output: Option<u64>,
    answers: Option<u64>,
}

impl Scan {
    /// Reads a piece.
    pub(super) fn feed(&mut self, piece: &[u8]) {
        for byte in piece {
            if self.in_string {
                self.within_string(*byte);
            } else {
                self.outside(*byte);
            }
        }
    }

    /// Ends the document: the next byte begins another one. A number at its end may be cut.
    pub(super) fn end(&mut self) {
        self.number = None;
        (self.depth, self.usage, self.in_string) = (0, 0, false);
        (self.next, self.of) = (Key::Other, Key::Other);
    }

    fn within_string(&mut self, byte: u8) {
        if self.escaped {
            self.escaped = false;
        } else if byte == b'\\' {
            self.escaped = true;
        } else if byte == b'"' {
            self.in_string = false;
            self.end_string();
            return;
        }
        let at = usize::try_from(self.length).unwrap_or(usize::MAX);
        if let Some(room) = self.key.get_mut(at) {
            *room = byte;
        }
        self.length = self.length.saturating_add(1);
    }

    fn end_string(&mut self) {
        match self.of {
            Key::Other => {
                let length = usize::try_from(self.length).unwrap_or(usize::MAX);
                self.next = self.key.get(..length).map_or(Key::Other, Key::of);
            }
            Key::Text => self.text = self.text.saturating_add(self.length),
            Key::Attached if self.length >= ATTACHED => {
                self.attached = self.attached.saturating_add(self.length);
                self.attachments = self.attachments.saturating_add(1);
            }
            Key::Count(_) if self.is_in_usage() => self.wrong = true,
            _ => {}
        }
    }

    fn outside(&mut self, byte: u8) {
        match byte {
            b'0'..=b'9' => return self.digit(byte),
            b'-' | b'+' | b'.' | b'e' | b'E' if self.number.is_some() || byte == b'-' => {
                // Counts of tokens have no fraction and no exponent, and are not negative.
                self.number = self.number.map(|_| u64::MAX);
                self.wrong |= byte == b'-' && self.counts();
                return;
            }
            _ => {}
        }
        self.end_number();
        match byte {
            b'"' if self.depth > 0 => {
                (self.in_string, self.escaped, self.length) = (true, false, 0);
            }
            b':' => self.of = core::mem::take(&mut self.next),
            b',' => (self.next, self.of) = (Key::Other, Key::Other),
            b'{' | b'[' => self.open(byte == b'['),
            b'}' | b']' => self.close(),
            _ => {}
        }
    }

    fn open(&mut self, is_array: bool) {
        if self.depth == 0 {
            self.in_array = is_array;
        }
        self.depth = self.depth.saturating_add(1);
        let of = core::mem::take(&mut self.of);
        if let Some(level) = self.level().and_then(|level| self.path.get_mut(level)) {
            *level = of;
        }
        let holder = self.holder();
        if of == Key::Usage && !is_array && self.usage == 0 && holder != Some(Key::Other) {
            self.usage = self.depth;
            self.begun = holder == Some(Key::Begun);
            if !self.begun {
                // This usage is of the whole response.
                self.numbers.output = None;
            }
        }
    }

    fn close(&mut self) {
        if self.depth == self.usage {
            self.usage = 0;
        }
        self.depth = self.depth.saturating_sub(1);
        (self.next, self.of) = (Key::Other, Key::Other);
    }

    /// Returns how deep the innermost object is. The outermost object, or an object in an outermost
    /// array, has 0.
    fn level(&self) -> Option<usize> {
        let outer = if self.in_array { 2 } else { 1 };
        usize::try_from(self.depth.checked_sub(outer)?).ok()
    }

    /// Returns the key of the object around the innermost object. The outermost object has `None`,
    /// and an object that is too deep has `Other`.
    fn holder(&self) -> Option<Key> {
        match self.level() {
            Some(1) => None,
            Some(2) => match self.path[1] {
                key @ (Key::Holder | Key::Begun) => Some(key),
                _ => Some(Key::Other),
            },
            _ => Some(Key::Other),
        }
    }

    fn is_in_usage(&self) -> bool {
        self.usage > 0 && self.usage == self.depth
    }

    /// Returns `true` if the next number matters.
    fn counts(&self) -> bool {
        match self.of {
            Key::Count(_) => self.is_in_usage(),
            Key::MaxOutput | Key::Answers => match self.level() {
                Some(0) => true,
                Some(1) => self.path[1] == Key::Settings,
                _ => false,
            },
            _ => false,
        }
    }

    fn digit(&mut self, byte: u8) {
        if self.number.is_none() && !self.counts() {
            return;
        }
        let digit = u64::from(byte.saturating_sub(b'0'));
        let number = self.number.unwrap_or_default();
        self.number = Some(number.saturating_mul(10).saturating_add(digit));
    }

    fn end_number(&mut self) {
        let Some(number) = self.number.take() else {
            return;
        };
        match self.of {
            Key::MaxOutput => self.max_output = self.max_output.max(Some(number)),
            Key::Answers => self.answers = Some(number),
            Key::Count(_) if number > MOST => self.wrong = true,
            Key::Count(Count::Input) => self.numbers.input = Some(number),
            Key::Count(Count::CacheWrite) => self.numbers.cache_write = Some(number),
            Key::Count(Count::Output) => self.numbers.output = Some(number),
            Key::Count(Count::Thoughts) => self.numbers.thoughts = Some(number),
            Key::Count(Count::Total) => self.numbers.total = Some(number),
            _ => {}
        }
    }

    /// Returns the usage, if the text has it.
    pub(super) fn usage(&self) -> Option<Usage> {
        let Numbers {
            input,
            cache_write,
            output,
            thoughts,
            total,
        } = self.numbers;
        if self.wrong || (input, output, total) == (None, None, None) {
            return None;
        }
        let input = input.map(|input| input.saturating_add(cache_write.unwrap_or(0)));
        let shown = output.map(|output| output.saturating_add(thoughts.unwrap_or(0)));
        let rest = total.map(|total| total.saturating_sub(input.unwrap_or(0)));
        let output = if self.begun { None } else { shown.max(rest) };
        // A total alone says nothing of its parts.
        let input = input.or(total.map(|_| 0));
        Some(Usage { input, output })
    }

    /// Returns `true` if a number of the usage is impossible.
    pub(super) const fn is_wrong(&self) -> bool {
        self.wrong
    }

    /// Returns the bytes of generated text.
    pub(super) const fn text(&self) -> u64 {
        self.text
    }

    /// Returns the bytes of attached files and pictures, and how many there are.
    pub(super) const fn attached(&self) -> (u64, u64) {
        (self.attached, self.attachments)
    }

    /// Returns the most tokens that a request asks for, of all answers.
    pub(super) fn max_output(&self) -> Option<u64> {
        let answers = self.answers.unwrap_or(1).clamp(1, MOST);
        Some(self.max_output?.saturating_mul(answers))
    }
}

#[cfg(test)]
mod tests {
    use super::{Scan, Usage};

    fn used(input: impl Into<Option<u64>>, output: impl Into<Option<u64>>) -> Usage {
        Usage {
            input: input.into(),
            output: output.into(),
        }
    }

    /// Reads a text whole, and in pieces of every length. All results must be the same.
    fn scan(text: &str) -> Scan {
        let mut whole = Scan::default();
        whole.feed(text.as_bytes());
        whole.end();
        for length in 1..text.len().min(40) {
            let mut pieces = Scan::default();
            for piece in text.as_bytes().chunks(length) {
                pieces.feed(piece);
            }
            pieces.end();
            assert_eq!(pieces.usage(), whole.usage(), "{length} {text}");
        }
        whole
    }

    #[test]
    fn each_services_usage_is_read() {
        let texts = [
            // "Chat Completions", "Responses", "Embeddings", OpenAI API; Mistral, OpenRouter.
            (
                r#"{"choices": [], "usage": {"prompt_tokens": 19, "completion_tokens": 10, "total_tokens": 29, "prompt_tokens_details": {"cached_tokens": 7}}}"#,
                used(19, 10),
            ),
            (
                r#"{"type":"response.completed","response":{"output":[],"usage":{"input_tokens":37,"output_tokens":11,"output_tokens_details":{"reasoning_tokens":3},"total_tokens":48}}}"#,
                used(37, 11),
            ),
            (
                r#"{"data": [[0.1e-3, -0.5]], "usage": {"prompt_tokens": 8, "total_tokens": 8}}"#,
                used(8, 0),
            ),
            // Members beside the usage do not count.
            (
                r#"{"usage":{"input_tokens":1,"output_tokens":2},"limits":{"input_tokens":9}}"#,
                used(1, 2),
            ),
            // "Messages", Claude Docs.
            (
                r#"{"usage":{"input_tokens":10,"cache_creation_input_tokens":5,"cache_read_input_tokens":900,"output_tokens":6}}"#,
                used(15, 6),
            ),
            // GroqDocs, at the end of a stream.
            (
                r#"{"x_groq":{"id":"r","usage":{"queue_time":0.02,"prompt_tokens":3,"completion_tokens":4,"total_tokens":7}}}"#,
                used(3, 4),
            ),
            // "GenerateContentResponse", Gemini API: one, and the array of a stream.
            (
                r#"{"candidates":[],"usageMetadata":{"promptTokenCount":8,"candidatesTokenCount":20,"thoughtsTokenCount":30,"totalTokenCount":58}}"#,
                used(8, 50),
            ),
            (
                r#"[{"usageMetadata":{"promptTokenCount":8,"totalTokenCount":9}},{"usageMetadata":{"promptTokenCount":8,"totalTokenCount":12}}]"#,
                used(8, 4),
            ),
            // "Converse", Amazon Bedrock.
            (
                r#"{"usage":{"inputTokens":12,"outputTokens":5,"totalTokens":17}}"#,
                used(12, 5),
            ),
        ];
        for (text, usage) in texts {
            assert_eq!(scan(text).usage(), Some(usage), "{text}");
        }
    }

    #[test]
    fn a_response_that_has_begun_knows_its_input_only() {
        let begun =
            r#"{"type":"message_start","message":{"usage":{"input_tokens":25,"output_tokens":1}}}"#;
        let mut scan = Scan::default();
        scan.feed(begun.as_bytes());
        scan.end();
        assert_eq!(scan.usage(), Some(used(25, None)));
        scan.feed(br#"{"type":"message_delta","usage":{"output_tokens":15}}"#);
        assert_eq!(scan.usage(), Some(used(25, 15)));
    }

    #[test]
    fn what_looks_like_usage_and_is_none_is_left_alone() {
        let texts = [
            "",
            "usage: 5",
            r#"{"usage": null}"#,
            r#"{"usage": []}"#,
            r#"{"usage": {"prompt_tokens_details": {"prompt_tokens": 5}}}"#,
            r#"{"content": [{"type": "tool_use", "input": {"usage": {"input_tokens": 5}}}]}"#,
            r#"{"message": {"content": {"usage": {"input_tokens": 5}}}}"#,
            r#"{"content": "\"usage\": {\"input_tokens\": 5}"}"#,
            r#"{"a": "usage", "b": {"input_tokens": 5}}"#,
            "\"usage\": {\"input_tokens\": 5}",
            "]}]}]}\"usage\": {\"input_tokens\": 5}",
        ];
        for text in texts {
            let scan = scan(text);
            assert_eq!((scan.usage(), scan.is_wrong()), (None, false), "{text}");
        }
    }

    #[test]
    fn a_usage_that_cannot_be_is_wrong() {
        let numbers = [
            "-5",
            "1.5",
            "1e9",
            "\"many\"",
            "10000001",
            "99999999999999999999999",
        ];
        for number in numbers {
            let text = format!(r#"{{"usage": {{"input_tokens": {number}, "output_tokens": 3}}}}"#);
            let scan = scan(&text);
            assert_eq!((scan.usage(), scan.is_wrong()), (None, true), "{text}");
        }
    }

    #[test]
    fn a_requests_settings_are_read() {
        let texts = [
            (r#"{"max_tokens": 100}"#, Some(100)),
            (r#"{"n": 3, "max_completion_tokens": 100}"#, Some(300)),
            (
                r#"{"max_output_tokens": 7, "input": "max_tokens"}"#,
                Some(7),
            ),
            (
                r#"{"generationConfig": {"maxOutputTokens": 50, "candidateCount": 2}}"#,
                Some(100),
            ),
            (
                r#"{"tools": [{"max_tokens": 100}], "metadata": {"max_tokens": 9}}"#,
                None,
            ),
        ];
        for (text, most) in texts {
            assert_eq!(scan(text).max_output(), most, "{text}");
        }
        let picture = format!(
            r#"{{"image_url": {{"url": "{}"}}, "data": "short"}}"#,
            "x".repeat(300)
        );
        assert_eq!(scan(&picture).attached(), (300, 1));
        assert_eq!(
            scan(r#"{"delta": {"content": "four"}, "role": "assistant"}"#).text(),
            4
        );
    }
}
