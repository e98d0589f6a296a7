//! Many tasks ask a service that allows little and says when to come back: all that is refused
//! comes back at once. In tokio's time, which a test moves.
#![expect(clippy::arithmetic_side_effects, reason = "small numbers")]

use alloc::sync::Arc;
use core::time::Duration;
use std::sync::Mutex;

use paceline::{
    Adaptive, Clock, Failure, RetryAfter, RetryStrategyExt, Timestamp, TokioClock,
    backoff::SeededRandom, law::PacedSettings,
};
use tokio::{task::JoinSet, time::sleep};

const SECOND: Duration = Duration::from_secs(1);

/// A service that allows `rate` requests a second and saves up `burst`, a millisecond away.
struct Service {
    rate: u64,
    burst: u64,
    /// Thousand-millionths of a request, and when they were there.
    tokens: Mutex<(u64, Timestamp)>,
    clock: TokioClock,
}

const ONE: u64 = 1_000_000_000;

impl Service {
    async fn ask(&self) -> Result<(), Failure> {
        sleep(Duration::from_millis(1)).await;
        let mut tokens = self.tokens.lock().unwrap();
        let now = self.clock.now();
        let since = u64::try_from(now.saturating_since(tokens.1).as_nanos()).unwrap();
        let there = (tokens.0 + since * self.rate).min(self.burst * ONE);
        let allowed = there >= ONE;
        *tokens = (if allowed { there - ONE } else { there }, now);
        let refused = Failure::throttling().with_retry_after(RetryAfter::AtLeast(SECOND));
        if allowed { Ok(()) } else { Err(refused) }
    }
}

/// Returns how many of the requests of 32 tasks fail, 16 each.
async fn failures(seed: u64, rate: u64, burst: u64) -> u32 {
    let clock = TokioClock::new();
    let strategy = Adaptive::builder()
        .paced(PacedSettings::new())
        .clock(Arc::new(clock))
        .random(Arc::new(SeededRandom::new(seed)));
    let strategy = Arc::new(strategy.build().unwrap());
    let tokens = Mutex::new((burst * ONE, Timestamp::ZERO));
    let service = Arc::new(Service {
        rate,
        burst,
        tokens,
        clock,
    });
    let mut tasks = JoinSet::new();
    for _ in 0..32 {
        let (strategy, service) = (strategy.clone(), service.clone());
        tasks.spawn(async move {
            let mut failed = 0;
            for _ in 0..16 {
                let run = strategy.run_async(async |_| service.ask().await);
                failed += u32::from(run.await.is_err());
            }
            failed
        });
    }
    tasks.join_all().await.into_iter().sum()
}

#[tokio::test(start_paused = true)]
async fn those_who_come_back_together_are_spread() {
    for (rate, burst) in [(50, 10), (50, 20), (20, 5)] {
        for seed in 0..8 {
            let failed = failures(seed, rate, burst).await;
            assert!(failed <= 5, "{failed} of 512 at {rate}/s, seed {seed}");
        }
    }
}
