//! An operation that is dropped at each of its awaits, one after the other, leaves nothing behind.

extern crate alloc;

mod support;

use alloc::sync::Arc;
use core::sync::atomic::Ordering::SeqCst;

use kit::{SECOND, check_left, check_tokens, polled};
use paceline::{Clock as _, SendLimiter, SendRate, TokioClock};
use paceline_tower::{RetryLayer, SendRateLayer};
use support::{Script, by_number, call, one_a_second, one_in};
use tower::Layer;

#[tokio::test(start_paused = true)]
async fn retries() {
    let mut stages = Vec::new();
    for polls in 0..200 {
        let strategy = one_a_second(SECOND / 10);
        let script = Script::of([Ok(500), Ok(200)]);
        let mut service = RetryLayer::shared(strategy.clone(), by_number).layer(script.clone());
        let ended = polled(polls, call(&mut service)).await.is_some();
        let seen = (script.sent(), script.answered.load(SeqCst));
        stages.push(seen);
        check_left(&strategy, seen, polls);
        if ended {
            break;
        }
    }
    let awaits = stages.len();
    stages.dedup();
    // Sent, failed and in line, sent again, ended: and woken once for its turn, not every 50 ms.
    assert_eq!(stages, [(0, 0), (1, 0), (1, 1), (2, 1), (2, 2)]);
    assert!(awaits < 10, "{awaits}");
}

#[tokio::test(start_paused = true)]
async fn waits_for_a_turn() {
    let mut stages = Vec::new();
    for polls in 0..200 {
        let clock = TokioClock::new();
        let rate = Arc::new(SendRate::paced(one_in(SECOND), clock.now()));
        let layer = SendRateLayer::new(SendLimiter::new(rate.clone()).clock(clock), by_number);
        let script = Script::of([Ok(200), Ok(200)]);
        let mut service = layer.layer(script.clone());
        let ended = polled(polls, async {
            let _first = call(&mut service).await;
            call(&mut service).await
        });
        let ended = ended.await.is_some();
        check_tokens(&rate, &clock, script.sent(), polls);
        stages.push((script.sent(), script.answered.load(SeqCst)));
        if ended {
            break;
        }
    }
    let awaits = stages.len();
    stages.dedup();
    // In line is where the first has been answered and the second not been sent.
    assert_eq!(stages, [(0, 0), (1, 0), (1, 1), (2, 1), (2, 2)]);
    assert!(awaits < 199, "it ended");
}

#[tokio::test(start_paused = true)]
async fn those_behind_one_who_gives_up_move_up() {
    let clock = TokioClock::new();
    let rate = Arc::new(SendRate::paced(one_in(SECOND), clock.now()));
    let layer = SendRateLayer::new(SendLimiter::new(rate.clone()).clock(clock), by_number);
    let service = layer.layer(Script::of([Ok(200), Ok(200)]));
    let (mut first, mut second, mut third) = (service.clone(), service.clone(), service);
    call(&mut first).await.expect("at once");
    let gives_up = tokio::time::timeout(SECOND / 2, call(&mut second));
    let (gave_up, third) = tokio::join!(gives_up, call(&mut third));
    assert!(gave_up.is_err() && third.is_ok());
    assert_eq!(clock.now().as_nanos(), 1_000_000_000);
}
