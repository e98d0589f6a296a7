//! Many processes and one allowance: runs the example of the adapter `paceline-fleet`, which has a
//! separate workspace.
//!
//! Starts a `redis-server` and a service that throttles, lets 8 processes send alone and then as a
//! fleet, prints a table, draws who sent how much, and fails unless the fleet stayed within the
//! allowance and used 97 % of it.
//!
//! `cargo run --release --example fleet -- [MEMBERS] [SECONDS]`

use std::path::Path;
use std::process::{Command, ExitCode};

fn main() -> ExitCode {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR")).join("adapters/fleet/Cargo.toml");
    let status = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
        .args([
            "run",
            "--quiet",
            "--release",
            "--example",
            "fleet",
            "--manifest-path",
        ])
        .arg(manifest)
        .arg("--")
        .args(std::env::args_os().skip(1))
        .status();
    match status {
        Ok(status) if status.success() => ExitCode::SUCCESS,
        Ok(_) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("fleet: cargo does not start: {error}");
            ExitCode::FAILURE
        }
    }
}
