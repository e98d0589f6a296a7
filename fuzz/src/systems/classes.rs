//! What two classes on one rate are held to.
//!
//! - *Trickle*: each token that background waits for comes after at most 60 of the foreground, and
//!   what stood in the first line.
//! - *Foreground first*: while a foreground request stands in line, background gets no more than
//!   one request has saved up, and one token.
//! - *Snapshot*: it shows no more tokens waited for than were asked for, and each send once.

use std::collections::VecDeque;

use paceline::snapshot::BackgroundSnapshot;

use super::oracle::Fault;

/// So many tokens of the foreground bring background one: 20, or 60 if it is ahead of its part.
const TRICKLE: u64 = 60;

/// A request behind the line.
#[derive(Debug)]
struct Place {
    number: u64,
    weight: u64,
    /// The foreground's sends when it came, and the tokens asked for up to it.
    since: u64,
    asked: u64,
    /// The foreground's sends when it last looked.
    looked: u64,
    is_forgotten: bool,
}

/// The two lines of one client.
#[derive(Debug, Default)]
pub(super) struct Classes {
    /// The tokens in the first line, and the most of them.
    ahead: u64,
    peak: u64,
    /// The tokens asked for behind the line and not sent, the most of them, and the most that one
    /// request asked for.
    behind: u64,
    most_behind: u64,
    heaviest: u64,
    /// What each class has sent.
    foreground: u64,
    background: u64,
    /// The most that the foreground sent between two looks of one request.
    blind: u64,
    places: VecDeque<Place>,
    serial: u64,
}

impl Classes {
    /// A request of the foreground takes a place.
    pub(super) fn ahead(&mut self, weight: u64) {
        self.ahead += weight;
        self.peak = self.peak.max(self.ahead);
        self.heaviest = self.heaviest.max(weight);
    }

    /// A request of background takes a place. Returns its number.
    pub(super) fn behind(&mut self, weight: u64) -> u64 {
        self.behind += weight;
        self.most_behind = self.most_behind.max(self.behind);
        self.heaviest = self.heaviest.max(weight);
        self.serial += 1;
        self.places.push_back(Place {
            number: self.serial,
            weight,
            since: self.foreground,
            asked: self.behind,
            looked: self.foreground,
            is_forgotten: false,
        });
        self.serial
    }

    /// The request `number` behind the line looks whether its turn has come.
    pub(super) fn looked(&mut self, number: u64) {
        let mut places = self.places.iter_mut();
        if let Some(place) = places.find(|place| place.number == number) {
            self.blind = self.blind.max(self.foreground - place.looked);
            place.looked = self.foreground;
        }
    }

    /// A request leaves its line, without its tokens.
    pub(super) fn gone(&mut self, number: Option<u64>, weight: u64) {
        match number {
            None => self.ahead -= weight,
            Some(number) => {
                self.places.retain(|place| place.number != number);
                self.behind -= weight;
            }
        }
    }

    /// A place is forgotten: what is released to it is lost, by the time a later one goes.
    pub(super) fn forgotten(&mut self, number: Option<u64>) {
        let place = self
            .places
            .iter_mut()
            .find(|place| Some(place.number) == number);
        if let Some(place) = place {
            place.is_forgotten = true;
        }
    }

    /// A request of the foreground goes, which `waited` in line or not.
    pub(super) fn foreground_goes(&mut self, weight: u64, waited: bool) -> Option<Fault> {
        if waited {
            self.ahead -= weight;
        }
        self.foreground += weight;
        let first = self.places.iter().find(|place| !place.is_forgotten)?;
        let (past, asked) = (self.foreground - first.since, first.asked);
        // A place of the trickle is put at one look, and found due at another.
        let each = TRICKLE
            + self.peak
            + self.heaviest
            + 2 * self.blind.max(self.foreground - first.looked);
        (past > asked * each).then_some(Fault::Trickle(past, asked))
    }

    /// A request of background goes.
    pub(super) fn background_goes(&mut self, number: u64, weight: u64) {
        self.gone(Some(number), weight);
        let lost = |place: &Place| place.is_forgotten && place.number < number;
        self.behind -= self
            .places
            .iter()
            .filter(|place| lost(place))
            .map(|place| place.weight)
            .sum::<u64>();
        self.places.retain(|place| !lost(place));
        self.background += weight;
    }

    /// Returns what background has sent.
    pub(super) const fn background(&self) -> u64 {
        self.background
    }

    /// Returns what background may send while a request of the foreground waits, once those behind
    /// the line have looked. What a declared limit bars may have been released long ago.
    pub(super) const fn saved_up(&self, is_declared: bool) -> u64 {
        let released = if is_declared { self.most_behind } else { 0 };
        self.heaviest + 1 + released
    }

    /// Compares what a snapshot shows. `is_whole` if nothing else moves the lines.
    pub(super) fn shown(
        &self,
        waiting: u64,
        shown: BackgroundSnapshot,
        whole: bool,
    ) -> Option<Fault> {
        let sent = if whole {
            self.background
        } else {
            shown.released.min(self.background)
        };
        // One place of the first line may be the trickle's.
        let is_true = shown.released == sent
            && shown.waiting <= self.behind
            && (!whole || waiting <= self.ahead + 1);
        (!is_true).then(|| Fault::Snapshot(format!("{waiting} and {shown:?}, not {self:?}")))
    }
}
