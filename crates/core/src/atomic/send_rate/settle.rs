//! Estimates that are settled with their true cost.
//!
//! *A debit* moves `issued` on by the difference, behind every place, whatever `V` is. So a debit
//! is a place whose request went before its turn. The tokens of a debit are spent already, and
//! later grants find these tokens in `issued`. The bucket is below zero by the debt, and places
//! before the debit keep their ranks. The bound of places is also the bound of debits. Model:
//! `sets::a_debit_beside_a_take_is_owed_once`.
//!
//! *A credit* writes the difference off, as a place given up does. The request was granted, so
//! every place before it was due. `issued` is spilled first, and no more is written off than the
//! bucket has room for. So credits never add up to a wrap. Model:
//! `sets::a_credit_beside_a_take_is_there_again_once`.
//!
//! A permit says whether its request took tokens. A request that went while nothing was limited is
//! credited nothing.
//!
//! *Declared limits* take a settlement in place of the bucket, because the rate follows from what
//! is left of them: see `Reports::settle`. A request that is not sent gives its tokens back by a
//! swap of `sent`: see `Reports::unsend`. Models:
//! `sets::a_settlement_beside_its_report_counts_twice_at_most`,
//! `sets::a_declared_settlement_beside_a_take_counts_both`.
//!
//! A thread may stop in a settlement:
//!
//! - After `sent` was moved on: the next thread that looks computes the rate from what is left.
//! - While an unsent request gives its tokens back, between `sent` and the bucket: the bucket has
//!   lost these tokens.

use super::SendRate;
use super::ask::Ask;
use super::permit::{SendPermit, WeightError};
use crate::Timestamp;

impl SendRate {
    /// Corrects what the request of `permit` took to its true `cost` in tokens: the difference is
    /// debited or credited.
    ///
    /// Services that count tokens, bytes or compute units say what a request cost in its response.
    /// Take an estimate before the request, and settle it after the response. Call this once for
    /// each permit: a second call counts the difference twice. Without a call, the estimate stays
    /// spent.
    ///
    /// - *A debit* is promised behind all earlier promises. The bucket may go below zero, and then
    ///   no new request is granted until the debt is paid. Places already in line keep their turns.
    /// - *A credit* fills the bucket up to its capacity, and wakes the waiters whose turn has come.
    ///   A cost of 0 gives the whole estimate back.
    /// - A permit that was granted while nothing was limited took no tokens, so nothing is settled.
    /// - Once the service has declared a limit
    ///   ([`ControlLaw::Declared`](crate::ControlLaw::Declared)) the difference changes the rest of
    ///   the limit, and so the rate, but not the bucket. Nothing is settled if the limiter has
    ///   taken in a report ([`observe`](Self::observe)) of this request or a later one: the report
    ///   includes the true cost.
    ///
    /// A debt stays when throttles are [forgotten](Self::forget_throttles); a [reset](Self::reset)
    /// removes the debt.
    ///
    /// Record the outcome separately. With [`SendPermit::costing`] the measured rate counts true
    /// costs.
    ///
    /// # Errors
    ///
    /// [`WeightError::LineFull`] if so many tokens are promised already that a debit would come
    /// near the wrap of places. The estimate stays spent.
    ///
    /// # Examples
    ///
    /// ```
    /// use core::time::Duration;
    /// use paceline::{AcquireError, SendRate, Timestamp, law::PacedSettings};
    ///
    /// // 1,000 tokens/s, of which the bucket holds two seconds' worth.
    /// let second = Duration::from_secs(1);
    /// let settings = PacedSettings::fixed(1_000, second)?.to_builder().burst(2 * second).build()?;
    /// let (rate, now) = (SendRate::paced(settings, Timestamp::ZERO), Timestamp::ZERO);
    ///
    /// let permit = rate.try_acquire_n(now, 1_200).unwrap(); // the estimate; 800 are left
    /// rate.settle(now, permit, 3_200).unwrap(); // the true cost: 1,200 below zero
    /// let wait = Duration::from_millis(1_201);
    /// assert_eq!(rate.try_acquire_n(now, 1), Err(AcquireError::NotInTime { wait }));
    /// # Ok::<(), paceline::law::PacedSettingsError>(())
    /// ```
    pub fn settle(&self, now: Timestamp, permit: SendPermit, cost: u32) -> Result<(), WeightError> {
        let more = i64::from(cost).wrapping_sub(permit.weight().into());
        let charged = self.words().filter(|_| permit.is_charged() && more != 0);
        let Some(engaged) = charged else {
            return Ok(());
        };
        let elapsed = engaged.law.elapsed(now);
        engaged.lending().hand_back(elapsed);
        let tokens = u32::try_from(more.unsigned_abs()).unwrap_or(u32::MAX);
        // The rate follows from what is left of a declared limit. A debt of the bucket would be
        // paid twice, and would outlast a report that includes the cost.
        let settled = if engaged.reports().settle(permit, more) {
            Ok(())
        } else if more > 0 {
            engaged.debit(elapsed, tokens).map(|_| ())
        } else {
            engaged.credit(elapsed, tokens);
            Ok(())
        };
        engaged.reports().follow(elapsed);
        engaged.waking().due(elapsed);
        settled
    }
}

impl Ask<'_> {
    /// Gives back what the request of `permit` took, because it is not sent.
    pub(crate) fn take_back(self, permit: SendPermit) {
        if let Some(engaged) = self.rate.words().filter(|_| permit.is_charged()) {
            let elapsed = engaged.law.elapsed(self.now);
            engaged.lending().hand_back(elapsed);
            engaged.reports().unsend(permit);
            let over = u32::try_from(engaged.reports().over(permit.weight())).unwrap_or(0);
            engaged.credit(elapsed, permit.weight().saturating_sub(over));
            engaged.reports().follow(elapsed);
            engaged.waking().due(elapsed);
        }
    }
}
