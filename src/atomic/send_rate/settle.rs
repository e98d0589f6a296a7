//! Estimates that are settled with their true cost.

use super::SendRate;
use super::permit::{SendPermit, WeightError};
use crate::Timestamp;

impl SendRate {
    /// Corrects what the request of `permit` took to its true cost.
    pub(crate) fn settle(
        &self,
        now: Timestamp,
        permit: SendPermit,
        cost: u32,
    ) -> Result<(), WeightError> {
        let more = i64::from(cost).wrapping_sub(permit.weight().into());
        let charged = self.words().filter(|_| permit.is_charged() && more != 0);
        let Some(engaged) = charged else {
            return Ok(());
        };
        let elapsed = engaged.elapsed(now);
        engaged.hand_back_own(elapsed);
        let tokens = u32::try_from(more.unsigned_abs()).unwrap_or(u32::MAX);
        // What is left of a declared limit makes the rate: a debt of the bucket would be paid
        // twice, and would outlast a report that has the cost in it.
        let settled = if engaged.settle_sends(permit, more) {
            Ok(())
        } else if more > 0 {
            engaged.debit(elapsed, tokens)
        } else {
            engaged.credit(elapsed, tokens);
            Ok(())
        };
        engaged.after_settling(elapsed);
        settled
    }

    /// Gives back what the request of `permit` took, which is not sent.
    pub(crate) fn take_back(&self, now: Timestamp, permit: SendPermit) {
        if let Some(engaged) = self.words().filter(|_| permit.is_charged()) {
            let elapsed = engaged.elapsed(now);
            engaged.hand_back_own(elapsed);
            engaged.unsend(permit);
            let over = u32::try_from(engaged.over(permit.weight())).unwrap_or(0);
            engaged.credit(elapsed, permit.weight().saturating_sub(over));
            engaged.after_settling(elapsed);
        }
    }
}
