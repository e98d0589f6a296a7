//! The events to come, the earliest first.

use alloc::collections::BinaryHeap;
use core::cmp::Reverse;

/// A slot is 2¹⁸ nanoseconds wide.
const WIDTH: u32 = 18;
/// The wheel has so many of them: a quarter of a second, longer than most round trips.
const SLOTS: u64 = 1_024;

/// Numbers in their order, whose upper 64 bits are a time.
///
/// A wheel of slots, since millions of events are on their way at once and a heap of all of them
/// does not fit the cache: only those of the present slot are sorted.
#[derive(Debug)]
pub(crate) struct Queue {
    /// What is due in the present slot, or was before.
    present: BinaryHeap<Reverse<u128>>,
    slot: u64,
    wheel: Vec<Vec<u128>>,
    /// How many events the wheel holds.
    turning: usize,
    /// What is further away than the wheel reaches.
    later: BinaryHeap<Reverse<u128>>,
}

impl Default for Queue {
    fn default() -> Self {
        Self {
            present: BinaryHeap::new(),
            slot: 0,
            wheel: (0..SLOTS).map(|_| Vec::new()).collect(),
            turning: 0,
            later: BinaryHeap::new(),
        }
    }
}

impl Queue {
    /// Puts an event in.
    pub(crate) fn push(&mut self, event: u128) {
        let slot = slot(event);
        if slot <= self.slot {
            self.present.push(Reverse(event));
        } else if slot - self.slot < SLOTS {
            self.wheel[place(slot)].push(event);
            self.turning += 1;
        } else {
            self.later.push(Reverse(event));
        }
    }

    /// Takes the earliest one out.
    pub(crate) fn pop(&mut self) -> Option<u128> {
        loop {
            if let Some(Reverse(event)) = self.present.pop() {
                return Some(event);
            }
            self.turn()?;
        }
    }

    /// Makes the next slot the present one, or the next that is not empty if the wheel is.
    fn turn(&mut self) -> Option<()> {
        let next = self.later.peek().map(|Reverse(event)| slot(*event));
        self.slot = if self.turning > 0 {
            self.slot + 1
        } else {
            next?
        };
        let due = &mut self.wheel[place(self.slot)];
        self.turning -= due.len();
        self.present.extend(due.drain(..).map(Reverse));
        while let Some(Reverse(event)) = self.later.peek() {
            if slot(*event) > self.slot {
                break;
            }
            self.present.extend(self.later.pop());
        }
        Some(())
    }
}

fn slot(event: u128) -> u64 {
    ((event >> 64) as u64) >> WIDTH
}

fn place(slot: u64) -> usize {
    // Less than `SLOTS`.
    (slot % SLOTS) as usize
}

#[cfg(test)]
mod tests {
    use super::{Queue, WIDTH};

    /// Takes everything out, and puts new events in on the way, near ones and far ones.
    #[test]
    fn events_come_in_the_order_of_a_sorted_list() {
        let mut rng = fastrand::Rng::with_seed(7);
        let mut queue = Queue::default();
        let (mut waiting, mut came) = (Vec::new(), Vec::new());
        let mut serial = 0;
        let mut put = |queue: &mut Queue, waiting: &mut Vec<u128>, now: u64| {
            let reach = rng.u32(0..=WIDTH + 13);
            serial += 1;
            let event = (u128::from(now + rng.u64(0..1 << reach)) << 64) | serial;
            queue.push(event);
            waiting.push(event);
        };
        (0..100).for_each(|_| put(&mut queue, &mut waiting, 0));
        for _ in 0..20_000 {
            let event = queue.pop().expect("as many come as go");
            came.push(event);
            put(&mut queue, &mut waiting, (event >> 64) as u64);
        }
        came.extend(core::iter::from_fn(|| queue.pop()));
        waiting.sort_unstable();
        assert!(came == waiting);
    }
}
