//! A small tool: it starts, sends a request or a few, and ends.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use paceline::Outcome;
use paceline_fleet::{Away, Fleet};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::rig::service::THROTTLED;

/// Where an order stands in the environment of the process.
const ORDER: &str = "LOCAL_TOOL_ORDER";

/// The order of a tool.
#[derive(Clone, Debug)]
pub(crate) struct Tool<'a> {
    pub(crate) file: &'a Path,
    pub(crate) service: u16,
    pub(crate) index: u8,
    /// What all tools may send per second.
    pub(crate) rate: u32,
    pub(crate) requests: u32,
}

impl Tool<'_> {
    /// Returns the command that starts it, behind `before`, a program that starts others.
    pub(crate) fn command(&self, before: &[&str]) -> Command {
        let program = std::env::current_exe().expect("a program has a path");
        let mut command = match before {
            [] => Command::new(&program),
            [first, rest @ ..] => {
                let mut command = Command::new(first);
                command.args(rest).arg(&program);
                command
            }
        };
        let Self {
            file,
            service,
            index,
            rate,
            requests,
        } = self;
        let file = file.to_str().expect("a plain path");
        let order = format!("{service} {index} {rate} {requests} {file}");
        command
            .args(["tool", "--ignored", "--exact", "--quiet"])
            .env(ORDER, order)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        command
    }

    pub(crate) fn start(&self) -> Child {
        self.command(&[]).spawn().expect("it starts")
    }
}

/// Does as the order of this process says.
pub(crate) fn obey() {
    let order = std::env::var(ORDER).expect("the other tests give orders");
    let words: Vec<&str> = order.splitn(5, ' ').collect();
    let number = |place: usize| words[place].parse::<u32>().expect("a number");
    let service = u16::try_from(number(0)).expect("a port");
    let index = u8::try_from(number(1)).expect("few tools");
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let sent = send(words[4].as_ref(), service, index, number(2), number(3));
    runtime
        .expect("a runtime")
        .block_on(sent)
        .expect("the service is there");
}

async fn send(
    file: &Path,
    service: u16,
    index: u8,
    rate: u32,
    requests: u32,
) -> std::io::Result<()> {
    let fleet = Fleet::local(file).expect("a path");
    // The one of the members of the rig.
    let scope = fleet.scope("rig", rate, Duration::from_secs(1));
    let scope = scope.expect("in range").when_away(Away::Closed);
    let budget = scope.join().expect("a runtime");
    let mut stream = TcpStream::connect(("127.0.0.1", service)).await?;
    stream.set_nodelay(true)?;
    stream.write_u8(index).await?;
    for _ in 0..requests {
        let permit = budget.acquire().await;
        stream.write_u8(b'.').await?;
        let outcome = match stream.read_u8().await? {
            THROTTLED => Outcome::Throttled,
            _ => Outcome::NotThrottled,
        };
        budget.record(permit, outcome);
    }
    Ok(())
}
