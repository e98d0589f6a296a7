//! What goes to the engine and what comes back: numbers, and nothing that is not checked.

use core::time::Duration;

use crate::fault::EngineFault;
use crate::settings::{Reach, Settings};

/// Which of the two kinds of step.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Step {
    Send,
    Quota,
}

/// A rate in thousandths of a token per second, as the engine answers it.
pub(crate) type Milli = u64;

/// What a member reports to the engine of the time since its last ask.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Report {
    /// Tokens that were spent.
    pub(crate) spent: u64,
    /// Responses that were throttled.
    pub(crate) throttled: u64,
    /// How long ago the last of those was sent, when the ask is made.
    pub(crate) age: Duration,
    /// How long that one took.
    pub(crate) trip: Duration,
    /// For how long the service said that nothing should be sent.
    pub(crate) pause: Duration,
    /// How long ago a knock was sent that was done, or zero.
    pub(crate) done: Duration,
    /// For how long a plan is spent, whatever got through.
    pub(crate) shut: Duration,
}

/// A rate in billionths of a token per second, as it is set.
pub(crate) type Nano = u64;

/// One ask for a lease. Repeated with the same number it is the same ask.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ask {
    pub(crate) seq: u64,
    pub(crate) leave: bool,
    pub(crate) want: u32,
    pub(crate) held: u32,
    pub(crate) back: u32,
    pub(crate) demand: Milli,
    pub(crate) allowance: Nano,
    pub(crate) report: Report,
    pub(crate) reach: Reach,
    /// What the member may still send alone, for an engine that has forgotten it.
    pub(crate) alone: Milli,
    /// The fleet's rate by the last answer, for the same.
    pub(crate) known: Milli,
    /// The weight of the request whose turn is next, for a knock; 0 if none waits.
    pub(crate) head: u32,
}

/// What the engine answered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) granted: u32,
    pub(crate) share: Milli,
    pub(crate) rate: Milli,
    pub(crate) allowance: Milli,
    pub(crate) members: u32,
    /// The engine did not know the member: the first ask, or it was emptied.
    pub(crate) joined: bool,
    /// What the member may send without the engine.
    pub(crate) alone: Milli,
    /// The lease that the engine's load asks for, and for how long it allows no other ask.
    pub(crate) lease: Duration,
    pub(crate) wait: Duration,
    /// The time until the turn of a member that has sent nothing yet; zero if that has come.
    pub(crate) start: Duration,
    /// The time until the next knock, while the service is shut.
    pub(crate) shut: Option<Duration>,
    /// This member knocks: by what is granted, or by what was since the last refusal.
    pub(crate) knocks: bool,
}

/// No honest engine answers a rate above this: 10⁹ tokens/s.
const MOST_MILLI: i64 = 1_000_000_000_000;

impl Ask {
    /// Returns the numbers of `step.lua`, in its order.
    ///
    /// One argument for all of them: a client without a password may send ten arguments, and is
    /// to get that error.
    pub(crate) fn words(&self, settings: &Settings) -> String {
        let report = &self.report;
        // By default a scope begins at its allowance.
        let initial = if settings.initial == settings.allowance {
            self.allowance
        } else {
            settings.initial.min(self.allowance)
        };
        let words = [
            self.seq.to_string(),
            u8::from(self.leave).to_string(),
            self.want.to_string(),
            self.held.to_string(),
            self.back.to_string(),
            thousandths(self.demand),
            report.spent.to_string(),
            report.throttled.to_string(),
            micros(report.age),
            micros(report.trip),
            micros(report.pause),
            billionths(self.allowance),
            billionths(initial),
            billionths(settings.floor),
            micros(self.reach.burst),
            micros(self.reach.lease),
            micros(self.reach.absent()),
            self.reach.keep().as_millis().to_string(),
            settings.weight.to_string(),
            thousandths(self.alone),
            micros(report.done),
            thousandths(self.known),
            micros(report.shut),
            self.head.to_string(),
        ];
        words.join(" ")
    }

    /// Reads the engine's answer to this ask.
    ///
    /// More than was asked for is no answer to it, and grants nothing.
    pub(crate) fn read(&self, numbers: &[i64]) -> Result<Answer, EngineFault> {
        let &[
            granted,
            share,
            rate,
            members,
            joined @ (0 | 1),
            alone,
            lease,
            allowance,
            wait,
            start,
            shut,
            knocks @ (0 | 1),
        ] = numbers
        else {
            return Err(EngineFault::Broken);
        };
        let granted = u32::try_from(granted).map_err(|_| EngineFault::Broken)?;
        let members = u32::try_from(members).map_err(|_| EngineFault::Broken)?;
        if granted > self.want {
            return Err(EngineFault::Broken);
        }
        Ok(Answer {
            granted,
            share: milli(share)?,
            rate: milli(rate)?,
            allowance: milli(allowance)?,
            members,
            joined: joined == 1,
            alone: milli(alone)?,
            lease: span(lease)?,
            wait: span(wait)?,
            start: span(start)?,
            shut: span(shut)?.checked_sub(Duration::from_micros(1)),
            knocks: knocks == 1,
        })
    }
}

fn span(micros: i64) -> Result<Duration, EngineFault> {
    let micros = u64::try_from(micros).map_err(|_| EngineFault::Broken)?;
    Ok(Duration::from_micros(micros))
}

fn milli(number: i64) -> Result<Milli, EngineFault> {
    if number > MOST_MILLI {
        return Err(EngineFault::Broken);
    }
    u64::try_from(number).map_err(|_| EngineFault::Broken)
}

/// Returns `nano` in whole tokens, with nine decimals: a rate of 2 in 3 s keeps its fraction.
fn billionths(nano: Nano) -> String {
    let whole = nano.wrapping_div(1_000_000_000);
    let rest = nano.wrapping_rem(1_000_000_000);
    format!("{whole}.{rest:09}")
}

/// Returns `milli` in whole tokens, with three decimals.
fn thousandths(milli: Milli) -> String {
    let (whole, rest) = (milli.wrapping_div(1_000), milli.wrapping_rem(1_000));
    format!("{whole}.{rest:03}")
}

fn micros(span: Duration) -> String {
    // No number is above 2⁵³, or the script refuses the ask.
    span.as_micros().min(1 << 53).to_string()
}

#[cfg(test)]
mod tests {
    use super::{Answer, Ask, Duration, EngineFault, Report, Settings, billionths, thousandths};

    fn ask(want: u32) -> Ask {
        Ask {
            seq: 1,
            leave: false,
            want,
            held: 0,
            back: 0,
            demand: 0,
            allowance: 1_000_000_000,
            report: Report::default(),
            reach: Settings::new(1, Duration::from_secs(1))
                .expect("in range")
                .reach(Duration::ZERO, Duration::ZERO),
            alone: 0,
            known: 0,
            head: 0,
        }
    }

    #[test]
    fn an_answer_is_twelve_numbers_in_range() {
        let answer = Answer {
            granted: 5,
            share: 1_500,
            rate: 2_000,
            allowance: 3_000,
            members: 3,
            joined: true,
            alone: 1_250,
            lease: Duration::from_millis(4),
            wait: Duration::from_millis(2),
            start: Duration::from_millis(9),
            shut: Some(Duration::from_micros(3)),
            knocks: true,
        };
        assert_eq!(
            ask(5).read(&[
                5, 1_500, 2_000, 3, 1, 1_250, 4_000, 3_000, 2_000, 9_000, 4, 1
            ]),
            Ok(answer)
        );
    }

    #[test]
    fn a_hostile_answer_grants_nothing() {
        let hostile: [&[i64]; 17] = [
            &[],
            &[5, 1, 1, 1, 0, 1, 1, 1, 1, 1, 0],
            &[5, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1],
            &[5, 1, 1, 1, 0, 1, 1, 1, 1, 1, -1, 0],
            &[5, 1, 1, 1, 0, 1, 1, 1, 1, 1, 0, 2],
            &[6, 1, 1, 1, 0, 1, 1, 1, 1, 1, 0, 0],
            &[-1, 1, 1, 1, 0, 1, 1, 1, 1, 1, 0, 0],
            &[i64::MAX, 1, 1, 1, 0, 1, 1, 1, 1, 1, 0, 0],
            &[5, -1, 1, 1, 0, 1, 1, 1, 1, 1, 0, 0],
            &[5, 1, i64::MAX, 1, 0, 1, 1, 1, 1, 1, 0, 0],
            &[5, 1, 1, i64::MIN, 0, 1, 1, 1, 1, 1, 0, 0],
            &[5, 1, 1, 1, 2, 1, 1, 1, 1, 1, 0, 0],
            &[5, 1, 1, 1, 0, -1, 1, 1, 1, 1, 0, 0],
            &[5, 1, 1, 1, 0, 1, -1, 1, 1, 1, 0, 0],
            &[5, 1, 1, 1, 0, 1, 1, -1, 1, 1, 0, 0],
            &[5, 1, 1, 1, 0, 1, 1, 1, -1, 1, 0, 0],
            &[5, 1, 1, 1, 0, 1, 1, 1, 1, -1, 0, 0],
        ];
        for numbers in hostile {
            assert_eq!(
                ask(5).read(numbers),
                Err(EngineFault::Broken),
                "{numbers:?}"
            );
        }
    }

    #[test]
    fn an_ask_is_its_numbers_in_the_order_of_the_script() {
        let second = Duration::from_secs(1);
        let mut settings = Settings::new(2, 3 * second).expect("in range");
        settings.initial = 500_000_000;
        settings.floor = 1_000_000;
        settings.weight = 7;
        let report = Report {
            spent: 11,
            throttled: 12,
            age: Duration::from_micros(13),
            trip: Duration::from_micros(14),
            pause: Duration::from_micros(15),
            done: Duration::from_micros(16),
            shut: Duration::from_micros(17),
        };
        let last = Ask {
            seq: 9,
            leave: true,
            held: 5,
            back: 6,
            demand: 1_050,
            report,
            alone: 2_500,
            known: 667,
            head: 20,
            allowance: settings.allowance,
            ..ask(4)
        };
        let words = "9 1 4 5 6 1.050 11 12 13 14 15 0.666666666 0.500000000 0.001000000 \
                     100000 200000 2000000 600000 7 2.500 16 0.667 17 20";
        assert_eq!(last.words(&settings), words);
        let initial = |settings: &Settings| {
            let words = last.words(settings);
            words.split(' ').nth(12).map(str::to_owned)
        };
        settings.initial = settings.allowance;
        assert_eq!(initial(&settings).as_deref(), Some("0.666666666"));
        settings.valid = Some(151 * second);
        let kept = settings.reach(Duration::ZERO, Duration::ZERO).keep();
        assert_eq!(kept, 604 * second);
    }

    #[test]
    fn a_rate_is_read_up_to_a_billion_tokens_a_second() {
        let most = 1_000_000_000_000;
        let answer = ask(0)
            .read(&[0, most, most, 1, 0, most, 0, most, 0, 1, 0, 0])
            .expect("in range");
        assert_eq!(
            (answer.share, answer.rate, answer.joined),
            (1_000_000_000_000, 1_000_000_000_000, false)
        );
        assert_eq!(
            ask(0).read(&[0, most + 1, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0]),
            Err(EngineFault::Broken)
        );
    }

    #[test]
    fn thousandths_keep_their_zeros() {
        assert_eq!(thousandths(2_000_050), "2000.050");
        assert_eq!(billionths(666_666_666), "0.666666666");
        assert_eq!(billionths(2_000_000_050_000), "2000.000050000");
    }
}
