//! How an attempt of an adaptive strategy comes to its turn, and how its wait is reported.

use core::time::Duration;

use super::{Adaptive, LONG_WAIT};
use crate::atomic::cells::{Condition, Tally};
use crate::strategy::{
    event::EventKind, refusal::NotAdmitted, request::SendRequest, token::nanos, turn::SendTurn,
};
use crate::{AcquireError, SendPermit};

impl Adaptive {
    /// Asks the send rate. The rest is for attempts that wait, and for hooks.
    #[inline(never)]
    pub(super) fn admit_limited(
        &self,
        turn: &mut SendTurn,
        request: SendRequest<'_>,
    ) -> Result<SendPermit, NotAdmitted> {
        let (manner, clock) = (&self.pace().manner, &self.engine.common.clock);
        let asked = match self.set {
            None => turn.ask(manner, &self.rate, clock, request),
            Some(_) => Err(None),
        };
        match asked {
            Ok(permit) if !self.engine.is_watched => Ok(permit),
            asked => self.admit_closely(turn, request, asked),
        }
    }

    // Out of the way of an attempt that goes at once.
    #[inline(never)]
    fn admit_closely(
        &self,
        turn: &mut SendTurn,
        request: SendRequest<'_>,
        asked: Result<SendPermit, Option<AcquireError>>,
    ) -> Result<SendPermit, NotAdmitted> {
        let begins = !turn.is_in_line();
        let (manner, clock) = (&self.pace().manner, &self.engine.common.clock);
        let admitted = match (asked, &self.set) {
            (Ok(permit), _) => Ok(permit),
            (Err(why), None) => turn.queue(manner, &self.rate, clock, request, why),
            (Err(_), Some(set)) => turn.admit_all(manner, set, clock, request),
        };
        let admitted = admitted.map_err(|why| self.not_admitted(turn, request, why, begins));
        if self.engine.is_watched {
            self.show_sent(turn, request, &admitted);
        }
        admitted
    }

    /// Takes note of an attempt that has to wait or is refused. In bulk the attempt gives up its
    /// place when everything has been throttled for too long.
    fn not_admitted(
        &self,
        turn: &mut SendTurn,
        request: SendRequest<'_>,
        why: NotAdmitted,
        begins: bool,
    ) -> NotAdmitted {
        if let NotAdmitted::Refused { wait } = why {
            self.note_refused(request, wait);
        }
        let NotAdmitted::Wait { wait, mut look_in } = why else {
            return why;
        };
        // An attempt that waits for several limits counts even if it is then refused as stalled.
        let counts_at_once = self.set.is_some();
        if begins && counts_at_once {
            self.count_delayed(request);
        }
        self.note_wait(turn, request, wait);
        if let Some((drought, longest)) = self.bulk_limits() {
            let now = request.now(self.clock()).as_nanos();
            if begins {
                drought.resumed(now, longest);
            }
            if let Some(dry) = drought.length(now) {
                let left = longest.saturating_sub(dry);
                if left == 0 {
                    *turn = SendTurn::new();
                    let span = Duration::from_nanos(dry);
                    return NotAdmitted::Stalled { span };
                }
                look_in = look_in.min(Duration::from_nanos(left));
            }
        }
        if begins && !counts_at_once {
            self.count_delayed(request);
        }
        NotAdmitted::Wait { wait, look_in }
    }

    /// Counts an attempt that has to wait.
    fn count_delayed(&self, request: SendRequest<'_>) {
        self.engine.counts.one(Tally::Delayed);
        if request.is_background() {
            self.engine.counts.one(Tally::DelayedBackground);
            if self.engine.counts.note(Condition::Classes, true) {
                self.engine.tell(|| EventKind::BackgroundWaits);
            }
        }
    }

    /// Counts a send that is refused.
    fn note_refused(&self, request: SendRequest<'_>, wait: Duration) {
        let counts = &self.engine.counts;
        counts.one(Tally::RefusedSend);
        let background = request.is_background();
        self.engine
            .tell(|| EventKind::SendRefused { wait, background });
        if !self.is_heard() {
            return;
        }
        let now = request.now(self.clock()).as_nanos();
        if counts.is_due(now, nanos(LONG_WAIT)) {
            let refused = counts.get(Tally::RefusedSend);
            self.engine
                .tell(|| EventKind::SendsRefused { refused, wait });
        }
    }

    /// Explains a wait of a second or more, once for each attempt.
    fn note_wait(&self, turn: &mut SendTurn, request: SendRequest<'_>, wait: Duration) {
        if wait < LONG_WAIT || !self.is_heard() || !turn.explains() {
            return;
        }
        let (limit, now) = (turn.limit().unwrap_or(0), request.now(self.clock()));
        if let Some(rate) = self.rates().nth(limit) {
            let kind = EventKind::LongWait {
                wait,
                limit,
                dimension: rate.law.obeys().unwrap_or_default(),
                rate: &rate.snapshot(now),
                background: request.is_background(),
            };
            self.engine.tell(|| kind);
        }
    }

    /// Calls the hook for an attempt that is let go, with how long it has waited.
    fn show_sent(
        &self,
        turn: &mut SendTurn,
        request: SendRequest<'_>,
        admitted: &Result<SendPermit, NotAdmitted>,
    ) {
        let began = turn.began();
        match admitted {
            Ok(_) => {
                let now = || request.now(self.clock());
                let waited = began.map_or(Duration::ZERO, |began| now().saturating_since(began));
                let background = request.is_background();
                self.engine.show(|| EventKind::Sent { waited, background });
            }
            Err(NotAdmitted::Wait { .. }) if began.is_none() => {
                turn.begin(request.now(self.clock()));
            }
            Err(_) => {}
        }
    }
}
