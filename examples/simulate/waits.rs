//! How long operations waited.

/// A histogram of spans, 16 bins to an octave.
#[derive(Debug)]
pub(crate) struct Waits {
    counts: Vec<u64>,
    total: u64,
}

impl Waits {
    /// Creates an empty one.
    pub(crate) fn new() -> Self {
        Self {
            counts: vec![0; 1024],
            total: 0,
        }
    }

    /// Counts one.
    pub(crate) fn add(&mut self, nanos: u64) {
        let nanos = nanos.max(16);
        let octave = u64::from(nanos.ilog2());
        let index = octave * 16 + ((nanos >> (octave - 4)) & 15);
        self.counts[usize::try_from(index).unwrap_or(1_023).min(1_023)] += 1;
        self.total += 1;
    }

    /// Returns the lower bound of the bin that holds this quantile, in nanoseconds.
    pub(crate) fn quantile(&self, permille: u64) -> u64 {
        let rank = self.total * permille / 1_000;
        let mut below = 0;
        for (index, count) in (0_u64..).zip(&self.counts) {
            below += count;
            if below > rank {
                let (octave, part) = (index / 16, index % 16);
                return (16 + part) << (octave - 4);
            }
        }
        0
    }
}
