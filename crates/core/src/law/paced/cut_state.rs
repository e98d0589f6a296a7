//! What the law remembers of the last cut besides its time, in 49 bits.

use crate::bits::Field;
use crate::fixed::Rate;

/// The most halvings of a starved rate.
pub(crate) const MOST_HALVINGS: u32 = 31;

/// A round trip, coarsely: three significant bits, up to 15 s.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct CoarseRtt(u8);

impl CoarseRtt {
    /// The unit of a trip, 2²⁴ ns; a shorter trip counts as 0.
    const UNIT: u32 = 24;
    /// The largest exponent.
    const LARGEST: u32 = 7;
    /// Codes from here on hold half of a trip's number, for a cut that knew next to nothing.
    const BLIND: u8 = 36;
    /// The code in place of a trip while the rate has not been throttled yet.
    const SLOW_START: Self = Self(0x3f);
    /// The codes in place of a trip while the law counts cycles, and the service is shut or open.
    const SHUT: Self = Self(0x3e);
    const OPEN: Self = Self(0x3d);

    /// Returns the trip of `nanos`, rounded down to one of 36 lengths.
    pub(crate) fn new(nanos: u64) -> Self {
        let units = nanos >> Self::UNIT;
        let exponent = (u64::BITS.wrapping_sub(units.leading_zeros())).saturating_sub(3);
        if exponent > Self::LARGEST {
            return Self((7 << 2) + 7);
        }
        let significand = u8::try_from(units >> exponent).unwrap_or(7);
        let exponent = u8::try_from(exponent).unwrap_or(7);
        if exponent == 0 {
            return Self(significand);
        }
        // The top bit of the significand is left out.
        Self((exponent << 2).wrapping_add(significand))
    }

    /// Returns the trip in nanoseconds.
    pub(crate) fn nanos(self) -> u64 {
        let units = if self.0 < 8 {
            u64::from(self.0)
        } else {
            let exponent = u32::from(self.0 >> 2).wrapping_sub(1);
            u64::from((self.0 & 3) | 4).wrapping_shl(exponent)
        };
        units << Self::UNIT
    }
}

/// The memory of the last cut. Low bits first: 37 of the peak, 5 of halvings, 6 of the trip, 1 for
/// a cut that came with a pause. During slow start the peak is the rate, and the trip's bits are
/// all ones. After a cut that knew next to nothing, half of the trip's number is kept, in codes
/// above all trips.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CutState(u64);

impl CutState {
    /// The bits of a rate that are dropped: 32 significant bits remain.
    const DROPPED: u32 = Rate::BITS.wrapping_sub(Self::PEAK_BITS);
    const PEAK_BITS: u32 = 37;
    const RAMP_SHIFT: u32 = Self::PEAK_BITS;
    const TRIP_SHIFT: u32 = Self::RAMP_SHIFT.wrapping_add(5);

    const PAUSE: u64 = 1 << 48;

    /// Returns the memory of a cut.
    ///
    /// `peak` is rounded down to 32 significant bits. `ramp`, the number of doublings until β times
    /// the peak is reached, is limited to 31.
    pub(crate) fn new(peak: Rate, ramp: u32, trip: CoarseRtt) -> Self {
        let ramp = u64::from(ramp.min(MOST_HALVINGS));
        Self(
            (peak.to_bits() >> Self::DROPPED)
                | (ramp << Self::RAMP_SHIFT)
                | (u64::from(trip.0) << Self::TRIP_SHIFT),
        )
    }

    /// Returns a peak that is remembered as more than `peak`: a bucket that starts at its ceiling
    /// has to hold all that the ceiling gives.
    pub(crate) fn rounded_up(peak: Rate) -> Rate {
        let more = u128::from(peak.last_place()) << Self::DROPPED.wrapping_add(1);
        Rate::from_raw(u128::from(peak.raw()).saturating_add(more))
    }

    /// Returns the memory of slow start at `rate`: there has been no cut.
    pub(crate) fn slow_start(rate: Rate) -> Self {
        Self::new(rate, 0, CoarseRtt::SLOW_START)
    }

    /// Returns `true` if the rate rises from a slow start, and has not been throttled yet.
    pub(crate) fn is_slow_start(self) -> bool {
        self.trip() == CoarseRtt::SLOW_START
    }

    /// Returns the 42 bits below the trip.
    fn low(bits: u128) -> u64 {
        Field::lowest(Self::TRIP_SHIFT).get(bits)
    }

    /// Returns the memory of an open service: `bits` are its low 42 bits.
    pub(super) fn open(bits: u128) -> Self {
        Self(Self::low(bits) | (u64::from(CoarseRtt::OPEN.0) << Self::TRIP_SHIFT))
    }

    /// Returns the memory of a shut service: `bits` are its low 42 bits.
    pub(super) fn shut(bits: u128) -> Self {
        Self(Self::low(bits) | (u64::from(CoarseRtt::SHUT.0) << Self::TRIP_SHIFT))
    }

    pub(super) const fn is_open(self) -> bool {
        self.trip_bits() == CoarseRtt::OPEN.0
    }

    /// Returns `true` if cycles are counted: the service is open or shut.
    pub(super) const fn is_of_cycle(self) -> bool {
        self.is_open() || self.is_shut()
    }

    pub(super) const fn is_shut(self) -> bool {
        self.trip_bits() == CoarseRtt::SHUT.0
    }

    /// Returns the memory, marked as that of a cut that knew next to nothing.
    pub(crate) const fn blind(self) -> Self {
        let trip = self.trip_bits() >> 1;
        let others = self.0 & !(0x3f << Self::TRIP_SHIFT);
        Self(others | ((CoarseRtt::BLIND.wrapping_add(trip) as u64) << Self::TRIP_SHIFT))
    }

    /// Returns `true` if the cut knew next to nothing.
    pub(crate) const fn is_blind(self) -> bool {
        let bits = self.trip_bits();
        CoarseRtt::BLIND <= bits && bits < CoarseRtt::OPEN.0
    }

    /// Returns the memory of the same cut, with a pause until its time.
    pub(crate) const fn with_pause(self) -> Self {
        Self(self.0 | Self::PAUSE)
    }

    /// Returns `true` if nothing is sent before the time of the cut. If `false`, a time before the
    /// cut is from a clock that lags.
    pub(crate) const fn has_pause(self) -> bool {
        self.0 & Self::PAUSE != 0
    }

    pub(crate) const fn from_bits(bits: u64) -> Self {
        Self(bits)
    }

    pub(crate) const fn to_bits(self) -> u64 {
        self.0
    }

    /// Returns the rate that was throttled; during slow start the current rate.
    pub(crate) const fn peak(self) -> Rate {
        let bits = self.0 & ((1 << Self::PEAK_BITS) - 1);
        Rate::from_bits(bits << Self::DROPPED)
    }

    /// Returns the number of doublings until β times the peak is reached; more than 0 if the law is
    /// starved.
    pub(crate) const fn ramp(self) -> u32 {
        (self.0 >> Self::RAMP_SHIFT) as u32 & MOST_HALVINGS
    }

    /// Returns the round trip of the request that was throttled.
    pub(crate) const fn trip(self) -> CoarseRtt {
        let bits = self.trip_bits();
        CoarseRtt(if self.is_blind() {
            bits.wrapping_sub(CoarseRtt::BLIND) << 1
        } else {
            bits
        })
    }

    #[expect(clippy::cast_possible_truncation, reason = "masked to the width")]
    const fn trip_bits(self) -> u8 {
        (self.0 >> Self::TRIP_SHIFT) as u8 & 0x3f
    }
}

#[cfg(test)]
mod tests;
