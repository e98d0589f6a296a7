//! Whatever blocks a thread ends in a moment once it is interrupted: by another thread, and by a
//! real Ctrl-C.

use core::time::Duration;
use std::{thread, time::Instant};

use paceline::{
    AcquireError, Adaptive, Failure, Operation, RetryAfter, RetryStrategy, RetryStrategyExt,
    SendLimiter, SendSet, Standard, law::PacedSettings, operation::StopReason, wait::Interrupt,
};

const MINUTES: Duration = Duration::from_secs(600);

/// Its one request of these minutes is used up.
fn slow() -> Adaptive {
    let settings = PacedSettings::fixed(1, MINUTES).unwrap();
    let strategy = Adaptive::builder().paced(settings).build().unwrap();
    strategy.run(|_| Ok::<_, Failure>(())).unwrap();
    strategy
}

/// Returns how long after an interrupt `work` ends that it interrupts.
fn late(work: impl FnOnce()) -> Duration {
    let interrupt = Interrupt::new();
    let handle = interrupt.clone();
    let setter = thread::spawn(move || {
        thread::sleep(Duration::from_millis(120));
        handle.set();
        Instant::now()
    });
    interrupt.within(work);
    let ended = Instant::now();
    assert!(interrupt.is_set());
    ended.saturating_duration_since(setter.join().unwrap())
}

/// Sooner than that, at the second or third attempt on a machine that does other work.
fn ends_soon(name: &str, work: impl Fn()) {
    let taken: Vec<_> = (0..4).map(|_| late(&work)).collect();
    let least = taken.iter().min().unwrap();
    assert!(*least < Duration::from_millis(100), "{name}: {taken:?}");
}

fn is_interrupted<E: core::fmt::Debug>(
    ended: Result<(), paceline::operation::RunError<E>>,
    attempts: u32,
) {
    let stopped = ended.unwrap_err();
    assert_eq!(stopped.why(), StopReason::Interrupted);
    assert_eq!(stopped.attempts(), attempts);
}

#[test]
fn waits_of_every_form_end_when_the_thread_is_interrupted() {
    let strategy = slow();
    let sent = || Ok::<_, Failure>(());
    ends_soon("run", || is_interrupted(strategy.run(|_| sent()), 0));
    ends_soon("run_with", || {
        is_interrupted(
            strategy.run_with(|_: &Failure| Failure::transient(), |_| sent()),
            0,
        );
    });
    ends_soon("sleep_by", || {
        let operation = strategy.operation().sleep_by(thread::sleep);
        is_interrupted(operation.run(|_| sent()), 0);
    });
    ends_soon("wait_blocking", || {
        let mut attempts = Operation::new(&strategy).start();
        let stop = attempts.wait_blocking(strategy.clock()).unwrap_err();
        assert_eq!(stop.why(), StopReason::Interrupted);
    });
    let rate = strategy.send_rate();
    let limiter = SendLimiter::new(rate);
    ends_soon("acquire_blocking", || {
        let refused = limiter.token().acquire_blocking();
        assert!(
            matches!(refused, Err(AcquireError::NotInTime { .. })),
            "{refused:?}"
        );
    });
    let several = SendLimiter::new(SendSet::new([rate]));
    ends_soon("acquire_blocking of a set", || {
        let refused = several.tokens([1]).acquire_blocking();
        assert!(
            matches!(refused, Err(error) if error.wait().is_some()),
            "{refused:?}"
        );
    });
    assert_eq!(
        strategy.snapshot().rate.unwrap().waiting,
        0,
        "no place is left"
    );
}

#[test]
fn a_backoff_ends_and_its_quota_goes_back() {
    let strategy = Standard::builder().max_attempts(9).build().unwrap();
    let hinted = Failure::transient().with_retry_after(RetryAfter::AtLeast(MINUTES));
    let operation = || strategy.operation().max_retry_after(2 * MINUTES);
    ends_soon("backoff", || {
        is_interrupted(operation().run(|_| Err::<(), _>(hinted)), 1);
    });
    ends_soon("backoff of sleep_by", || {
        let operation = operation().sleep_by(thread::sleep);
        is_interrupted(operation.run(|_| Err::<(), _>(hinted)), 1);
    });
    assert_eq!(strategy.quota().available(), 500);
}

/// The inner loop has no more attempts than the outer one after it.
#[test]
fn loops_inside_of_loops_end_together_and_nothing_is_sent_any_more() {
    let (outer, inner) = (Standard::new(), slow());
    ends_soon("nested", || {
        let mut begun = 0;
        let operation = outer.operation().composite();
        let ended = operation.run(|_| {
            begun += 1;
            is_interrupted(inner.run(|_| Ok::<_, Failure>(())), 0);
            Err::<(), _>(Failure::throttling())
        });
        is_interrupted(ended, 1);
        assert_eq!(begun, 1);
        let sent = |_| -> Result<(), Failure> { panic!("sent") };
        is_interrupted(outer.run(sent), 0);
    });
    // It is over with the call.
    outer.run(|_| Ok::<_, Failure>(())).unwrap();
    let (one, other) = (Interrupt::new(), Interrupt::new());
    one.within(|| {
        one.set();
        other.within(|| is_interrupted(outer.run(|_| Ok::<_, Failure>(())), 0));
        assert!(!other.is_set());
    });
}

/// What a command line tool does: it saves what it has learned on the way out.
#[cfg(unix)]
mod ctrl_c {
    use std::{
        env,
        io::{BufRead, BufReader, Read},
        process::{Command, Stdio},
    };

    use paceline::SendRate;
    use tokio::signal::unix::{SignalKind, signal};

    use super::*;

    const CHILD: &str = "PACELINE_INTERRUPTED_CHILD";

    /// Runs in a process of its own, until it gets a signal.
    #[test]
    fn tool() {
        if env::var_os(CHILD).is_none() {
            return;
        }
        let interrupt = Interrupt::new();
        let handler = interrupt.clone();
        let (ready, is_ready) = std::sync::mpsc::channel();
        thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread();
            let runtime = { runtime }.enable_all().build().unwrap();
            runtime.block_on(async {
                let mut pressed = signal(SignalKind::interrupt()).unwrap();
                ready.send(()).unwrap();
                pressed.recv().await;
                handler.set();
            });
        });
        is_ready.recv().unwrap();
        let (outer, inner) = (Standard::new(), slow());
        println!("\nready");
        let ended = interrupt.within(|| {
            outer.operation().composite().run(|_| {
                let ended = inner.run(|_| Ok::<_, Failure>(()));
                ended.map_err(|_| Failure::throttling())
            })
        });
        assert_eq!(ended.unwrap_err().why(), StopReason::Interrupted);
        let now = inner.clock().now();
        let learned = SendRate::learned(inner.send_rate(), now);
        println!("\nsaved {}", serde_json::to_string(&learned).unwrap());
    }

    fn press() -> (Duration, String) {
        let mut child = Command::new(env::current_exe().unwrap())
            .args(["--exact", "interrupts::ctrl_c::tool", "--nocapture"])
            .env(CHILD, "1")
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut out = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        while line.trim() != "ready" {
            line.clear();
            assert!(out.read_line(&mut line).unwrap() > 0, "it has ended");
        }
        thread::sleep(Duration::from_millis(200));
        let pressed = Instant::now();
        let kill = Command::new("kill")
            .args(["-INT", &child.id().to_string()])
            .status();
        assert!(kill.unwrap().success());
        assert!(child.wait().unwrap().success());
        let taken = pressed.elapsed();
        let mut rest = String::new();
        out.read_to_string(&mut rest).unwrap();
        (taken, rest)
    }

    #[test]
    fn a_tool_that_waits_for_minutes_has_saved_and_ended_in_a_moment() {
        let pressed: Vec<_> = (0..4).map(|_| press()).collect();
        let taken: Vec<_> = pressed.iter().map(|(taken, _)| *taken).collect();
        println!("{taken:?}");
        assert!(
            *taken.iter().min().unwrap() < Duration::from_millis(100),
            "{taken:?}"
        );
        assert!(
            pressed.iter().all(|(_, out)| out.contains("saved {")),
            "{pressed:?}"
        );
    }
}
