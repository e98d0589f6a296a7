//! A real `redis-server`, or `valkey-server`, of our own: on a free port of the loopback, without
//! files.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Kills the server as soon as the other end of the pipe is gone, however this process ends.
const GUARDED: &str = r#""$@" & read -r _; kill -9 $!; wait"#;

/// A server that is stopped when this is dropped.
#[derive(Debug)]
pub(crate) struct Engine {
    program: &'static str,
    port: u16,
    options: Vec<String>,
    child: Option<Child>,
}

impl Engine {
    /// Starts a server with `options`, or returns `None` and says so if there is no program to
    /// start.
    pub(crate) fn start(options: &[&str]) -> Option<Self> {
        let wanted = std::env::var("FLEET_ENGINE").ok();
        let names = ["redis-server", "valkey-server"];
        let program = names.into_iter().find(|name| {
            let version = Command::new(name)
                .arg("--version")
                .stdout(Stdio::null())
                .status();
            wanted.as_deref().is_none_or(|wanted| wanted == *name) && version.is_ok()
        });
        let Some(program) = program else {
            println!("skipped: there is no redis-server; `ci/check.sh fleet` installs it");
            return None;
        };
        let mut engine = Self {
            program,
            port: free_port(),
            options: options.iter().map(ToString::to_string).collect(),
            child: None,
        };
        engine.start_again();
        Some(engine)
    }

    pub(crate) const fn port(&self) -> u16 {
        self.port
    }

    pub(crate) fn address(&self) -> String {
        format!("redis://127.0.0.1:{}/", self.port)
    }

    /// Starts the server again, on the same port and with nothing in it, and waits until it
    /// answers.
    pub(crate) fn start_again(&mut self) {
        let mut command = Command::new("sh");
        command.args(["-c", GUARDED, "sh", self.program]);
        if self.options.iter().any(|option| option == "--sentinel") {
            // It wants a file of settings that it may write, and does not know the others below.
            let file = format!("/tmp/paceline-fleet-{}.conf", self.port);
            std::fs::write(&file, "").expect("a file in /tmp");
            command.args([
                &file,
                "--port",
                &self.port.to_string(),
                "--bind",
                "127.0.0.1",
            ]);
        } else {
            command
                .args(["--port", &self.port.to_string(), "--bind", "127.0.0.1"])
                .args(["--save", "", "--appendonly", "no"])
                // A replica writes what it is sent to this file, and any server would begin with
                // it.
                .args(["--dir", "/tmp", "--dbfilename", &self.file()]);
        }
        let child = command
            .args(&self.options)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("the server starts");
        self.child = Some(child);
        let deadline = Instant::now() + Duration::from_secs(30);
        while !self.says("PING").is_ok_and(|answer| !answer.is_empty()) {
            assert!(Instant::now() < deadline, "the server does not answer");
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    fn file(&self) -> String {
        format!("paceline-fleet-{}.rdb", self.port)
    }

    /// Starts a Sentinel that watches nothing, or returns `None` where there is no server.
    pub(crate) fn start_sentinel() -> Option<Self> {
        Self::start(&["--sentinel"])
    }

    /// Kills the server. What it held is gone.
    pub(crate) fn stop(&mut self) {
        if let Some(mut child) = self.child.take() {
            drop(child.stdin.take());
            child.wait().expect("it was killed");
            let _none = std::fs::remove_file(format!("/tmp/{}", self.file()));
            let _none = std::fs::remove_file(format!("/tmp/paceline-fleet-{}.conf", self.port));
        }
    }

    /// Sends one line, and returns what comes back at once.
    pub(crate) fn says(&self, line: &str) -> std::io::Result<String> {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port))?;
        stream.set_read_timeout(Some(Duration::from_secs(2)))?;
        stream.write_all(format!("{line}\r\n").as_bytes())?;
        let mut answer = vec![0; 65_536];
        let length = stream.read(&mut answer)?;
        Ok(String::from_utf8_lossy(&answer[..length]).into_owned())
    }

    /// Becomes a replica of `primary`, and waits until it has everything.
    pub(crate) async fn follow(&self, primary: &Self) {
        let order = format!("REPLICAOF 127.0.0.1 {}", primary.port());
        self.says(&order).expect("the replica answers");
        for _ in 0..300 {
            let state = self.says("INFO replication").unwrap_or_default();
            if state.contains("master_link_status:up") {
                return;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        panic!("the replica does not follow");
    }

    /// Returns the seconds of processor that the server has used.
    pub(crate) fn processor(&self) -> f64 {
        let info = self.says("INFO cpu").expect("the server answers");
        let names = ["used_cpu_user:", "used_cpu_sys:"];
        let line = |name| info.lines().find_map(|line| line.strip_prefix(name));
        let number = |name| line(name).and_then(|number| number.trim().parse::<f64>().ok());
        names.into_iter().filter_map(number).sum()
    }

    /// Returns how often the server has run a command.
    pub(crate) fn calls(&self, command: &str) -> f64 {
        let stats = self.says("INFO commandstats").expect("the server answers");
        let name = format!("cmdstat_{command}:calls=");
        let calls = stats.lines().find_map(|line| line.strip_prefix(&name));
        let calls = calls.and_then(|line| line.split(',').next());
        calls.and_then(|number| number.parse().ok()).unwrap_or(0.0)
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Returns a port that was free just now.
pub(crate) fn free_port() -> u16 {
    let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a port is free");
    listener.local_addr().expect("it is bound").port()
}
