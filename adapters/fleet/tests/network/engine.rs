//! The engine on the simulated network: its script, behind as much of the protocol as a member
//! speaks.

use std::cell::{Cell, RefCell};
use std::collections::HashSet;
use std::io;
use std::net::Ipv4Addr;
use std::rc::Rc;
use std::time::Duration;

use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use turmoil::net::{TcpListener, TcpStream};

use crate::script::ScriptEngine;

pub(crate) const PORT: u16 = 6379;
/// What the engine's clock is ahead of the simulation's: members know only spans of it.
const AHEAD: Duration = Duration::from_secs(1_700_000_000);

/// What an engine keeps when its process ends.
#[derive(Debug)]
pub(crate) struct Disk {
    script: RefCell<ScriptEngine>,
    granted: Cell<u64>,
    /// What its clock counts for a second, in thousandths.
    pace: u32,
}

impl Disk {
    pub(crate) fn new(pace: u32) -> Self {
        Self {
            script: RefCell::new(ScriptEngine::new()),
            granted: Cell::new(0),
            pace,
        }
    }

    pub(crate) fn forget(&self) {
        self.script.borrow().forget();
    }

    /// Returns how many tokens were granted, whether the answers arrived or not.
    pub(crate) fn granted(&self) -> u64 {
        self.granted.get()
    }

    fn step(&self, member: &str, words: &str) -> String {
        let passed = turmoil::sim_elapsed().expect("in the simulation");
        let now = AHEAD + passed * self.pace / 1_000;
        let micros = u64::try_from(now.as_micros()).expect("in range");
        match self.script.borrow_mut().take(micros, member, words) {
            Ok(numbers) => {
                let granted = u64::try_from(numbers[0]).expect("not below zero");
                self.granted.set(self.granted.get() + granted);
                let count = format!("*{}\r\n", numbers.len());
                numbers
                    .iter()
                    .fold(count, |answer, number| format!("{answer}:{number}\r\n"))
            }
            Err(refusal) => format!("-{refusal}\r\n"),
        }
    }
}

/// Answers members until the process ends.
pub(crate) async fn serve(disk: Rc<Disk>) -> turmoil::Result {
    let listener = TcpListener::bind((Ipv4Addr::UNSPECIFIED, PORT)).await?;
    // Scripts are not on the disk.
    let scripts = Rc::new(RefCell::new(HashSet::new()));
    loop {
        let (stream, _) = listener.accept().await?;
        let (disk, scripts) = (Rc::clone(&disk), Rc::clone(&scripts));
        tokio::task::spawn_local(async move {
            // A connection that breaks is the member's to see.
            _ = answer(stream, &disk, &scripts).await;
        });
    }
}

async fn answer(
    stream: TcpStream,
    disk: &Disk,
    scripts: &RefCell<HashSet<String>>,
) -> io::Result<()> {
    let mut stream = BufReader::new(stream);
    loop {
        let words = command(&mut stream).await?;
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let answer = match *words {
            ["SCRIPT", "LOAD", text] => {
                let hash = redis::Script::new(text).get_hash().to_owned();
                let answer = format!("+{hash}\r\n");
                scripts.borrow_mut().insert(hash);
                answer
            }
            ["EVALSHA", hash, ..] if !scripts.borrow().contains(hash) => {
                "-NOSCRIPT No matching script.\r\n".to_owned()
            }
            ["EVALSHA" | "EVAL", _, "1", _, member, words] => disk.step(member, words),
            ["HELLO", ..] => "-ERR unknown command\r\n".to_owned(),
            _ => "+OK\r\n".to_owned(),
        };
        stream.write_all(answer.as_bytes()).await?;
    }
}

/// Reads a command: how many words, then each behind its length.
async fn command(stream: &mut BufReader<TcpStream>) -> io::Result<Vec<String>> {
    let mut words = Vec::new();
    for _ in 0..number(stream, '*').await? {
        let mut word = vec![0; number(stream, '$').await?];
        stream.read_exact(&mut word).await?;
        stream.read_exact(&mut [0; 2]).await?;
        words.push(String::from_utf8(word).map_err(io::Error::other)?);
    }
    Ok(words)
}

async fn number(stream: &mut BufReader<TcpStream>, begins: char) -> io::Result<usize> {
    let mut line = String::new();
    if stream.read_line(&mut line).await? == 0 {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    let digits = line.trim_end().strip_prefix(begins);
    let number = digits.and_then(|digits| digits.parse().ok());
    number.ok_or_else(|| io::Error::other(line))
}
