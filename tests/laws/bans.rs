//! A service that refuses everything for hours and says so in each refusal.
//!
//! The public case: every answer is a 429 with `Retry-After: 13262`
//! (<https://github.com/spotDL/spotify-downloader/issues/2585>).

use core::time::Duration;

use paceline::{ControlLaw, Outcome, SendPermit, SendRate, Timestamp, law::PacedSettings};

const MILLI: u64 = 1_000_000;
const SECOND: u64 = 1_000 * MILLI;
const HOUR: u64 = 3_600 * SECOND;
const TRIP: u64 = 100 * MILLI;

fn at(nanos: u64) -> Timestamp {
    Timestamp::from_nanos(nanos)
}

/// Sends as often as the rate allows from `from` to `to`, and answers each request a trip later.
/// Returns how many were sent.
fn play(rate: &SendRate, from: u64, to: u64, refused: bool) -> u64 {
    let outcome = if refused {
        Outcome::ThrottledFor(Duration::from_secs(13_262))
    } else {
        Outcome::NotThrottled
    };
    let mut flying: Vec<(u64, SendPermit)> = Vec::new();
    let mut sent = 0;
    for now in (from..to).step_by(5_000_000) {
        while flying.first().is_some_and(|(back, _)| *back <= now) {
            let (_, permit) = flying.remove(0);
            rate.record(at(now), permit, outcome);
        }
        // A caller has sixteen workers.
        while flying.len() < 16 && (refused || now % (80 * MILLI) == 0) {
            let Ok(permit) = rate.try_acquire(at(now)) else {
                break;
            };
            sent += 1;
            flying.push((now + TRIP, permit));
            if !refused {
                break;
            }
        }
    }
    sent
}

/// At most this many are sent in an hour: a minute is the longest pause, and the rate has to fall
/// first.
const MOST: u64 = 120;

#[test]
fn a_ban_that_every_refusal_tells_pauses_everybody() {
    for settings in [PacedSettings::new(), PacedSettings::shared()] {
        let rate = SendRate::paced(settings, at(0));
        // 12.5 requests a second were delivered before.
        play(&rate, 0, 60 * SECOND, false);
        let sent = play(&rate, 60 * SECOND, 60 * SECOND + HOUR, true);
        assert!(sent <= MOST, "{sent} of {settings:?}");
        let sent = play(&rate, 60 * SECOND + HOUR, 60 * SECOND + 2 * HOUR, true);
        assert!(sent <= 61, "{sent} of {settings:?} in the second hour");
    }
    let rate = SendRate::new(ControlLaw::Declared, at(0));
    play(&rate, 0, 60 * SECOND, false);
    let sent = play(&rate, 60 * SECOND, 60 * SECOND + HOUR, true);
    assert!(sent <= MOST, "{sent} of the declared law");
}

/// A ban of five minutes, told in each refusal (<https://github.com/rclone/rclone/issues/1788>).
#[test]
fn the_longest_pause_is_a_setting() {
    for (longest, pause) in [(30, 30), (60, 60), (300, 300), (86_400, 300)] {
        let settings = PacedSettings::builder().max_pause(Duration::from_secs(longest));
        let rate = SendRate::paced(settings.build().expect("a day at most"), at(0));
        let refused = Outcome::ThrottledFor(Duration::from_secs(300));
        rate.record(at(SECOND), SendPermit::sent_at(at(SECOND)), refused);
        assert_eq!(
            rate.try_acquire(at(SECOND))
                .map(drop)
                .map_err(|wait| wait.as_secs()),
            Err(pause),
            "{longest} s at most"
        );
    }
    let day = Duration::from_secs(86_400);
    let too_long = PacedSettings::builder().max_pause(day + Duration::from_nanos(1));
    assert_eq!(
        too_long.build().map_err(|error| error.to_string()),
        Err("a pause of 86400.000000001s is longer than a day".to_owned())
    );
}
