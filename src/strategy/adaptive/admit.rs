//! How an attempt of an adaptive strategy comes to its turn, and how its wait is reported.

use core::{mem, time::Duration};

use super::{Adaptive, LONG_WAIT};
use crate::cells::{Condition, Tally};
use crate::strategy::{
    event::EventKind,
    refusal::NotAdmitted,
    request::SendRequest,
    token::nanos,
    turn::{Lines, SendTurn},
};
use crate::{AcquireError, SendPermit};

impl Adaptive {
    /// Asks the send rates. `admit_closely` is for attempts that wait, and for hooks.
    #[inline(never)]
    pub(super) fn admit_limited(
        &self,
        turn: &mut SendTurn,
        request: SendRequest<'_>,
    ) -> Result<SendPermit, NotAdmitted> {
        match turn.ask(self.lines(), request) {
            Ok(permit) if !self.engine.is_watched => Ok(permit),
            asked => self.admit_closely(turn, request, asked),
        }
    }

    fn lines(&self) -> Lines<'_> {
        Lines {
            manner: &self.engine.common.pace.manner,
            rate: &self.rate,
            set: self.set.is_several().then_some(&self.set),
            members: self.members.as_deref(),
            clock: &self.engine.common.clock,
        }
    }

    /// Lets an attempt stand in line if it cannot go at once, and counts and emits the answer.
    // Not inlined, because most attempts go at once.
    #[inline(never)]
    fn admit_closely(
        &self,
        turn: &mut SendTurn,
        request: SendRequest<'_>,
        asked: Result<SendPermit, Option<AcquireError>>,
    ) -> Result<SendPermit, NotAdmitted> {
        let begins = !turn.is_in_line();
        let admitted = asked.or_else(|why| turn.queue(self.lines(), request, why));
        match admitted {
            Ok(_) => {
                let now = || request.now(self.clock());
                let waited = |began| now().saturating_since(began);
                let waited = turn.began.map_or(Duration::ZERO, waited);
                let background = request.is_background();
                self.engine.show(|| EventKind::Sent { waited, background });
            }
            Err(NotAdmitted::Refused { wait }) => self.note_refused(request, wait),
            Err(NotAdmitted::Wait { wait, look_in }) => {
                return Err(self.note_wait(turn, request, wait, look_in, begins));
            }
            Err(_) => {}
        }
        admitted
    }

    /// Counts a send that is refused.
    fn note_refused(&self, request: SendRequest<'_>, wait: Duration) {
        let counts = &self.engine.counts;
        counts.one(Tally::RefusedSend);
        let background = request.is_background();
        self.engine
            .tell(|| EventKind::SendRefused { wait, background });
        if !self.engine.is_heard() {
            return;
        }
        let now = request.now(self.clock()).as_nanos();
        if counts.is_due(now, nanos(LONG_WAIT)) {
            let refused = counts.get(Tally::RefusedSend);
            self.engine
                .tell(|| EventKind::SendsRefused { refused, wait });
        }
    }

    /// Emits an event for a wait of a second or more, and counts an attempt that has to wait. Both
    /// happen once for each attempt. In bulk the attempt gives up its place when everything has
    /// been throttled for too long.
    fn note_wait(
        &self,
        turn: &mut SendTurn,
        request: SendRequest<'_>,
        wait: Duration,
        mut look_in: Duration,
        begins: bool,
    ) -> NotAdmitted {
        let (counts, background) = (&self.engine.counts, request.is_background());
        let now = || request.now(self.clock());
        let mut stalled = None;
        if let Some((drought, longest)) = self.bulk_limits() {
            let now = now().as_nanos();
            if begins {
                drought.resumed(now, longest);
            }
            if let Some(dry) = drought.length(now) {
                match longest.saturating_sub(dry) {
                    0 => stalled = Some(Duration::from_nanos(dry)),
                    left => look_in = look_in.min(Duration::from_nanos(left)),
                }
            }
        }
        if wait >= LONG_WAIT && self.engine.is_heard() && !mem::replace(&mut turn.explained, true) {
            let limit = turn.limit().unwrap_or(0);
            let set = self.sets().get(turn.member()).unwrap_or(&self.set);
            if let Some(rate) = set.rates().nth(limit) {
                let kind = EventKind::LongWait {
                    wait,
                    limit,
                    dimension: rate.obeys().unwrap_or_default(),
                    rate: &rate.snapshot(now()),
                    background,
                };
                self.engine.tell(|| kind);
            }
        }
        // An attempt that waits for several limits counts even if it is refused as stalled.
        if begins && (self.is_several() || stalled.is_none()) {
            counts.one(Tally::Delayed);
            if background {
                counts.one(Tally::DelayedBackground);
                if counts.note(Condition::Classes, true) {
                    self.engine.tell(|| EventKind::BackgroundWaits);
                }
            }
        }
        if let Some(span) = stalled {
            *turn = SendTurn::new();
            return NotAdmitted::Stalled { span };
        }
        if self.engine.is_watched {
            turn.began.get_or_insert_with(now);
        }
        NotAdmitted::Wait { wait, look_in }
    }
}
