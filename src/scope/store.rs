//! The bounded map: finding, creating and evicting.

use alloc::{boxed::Box, sync::Arc};

use crossbeam_queue::SegQueue;
use papaya::HashMap;

use super::{
    ScopeRefused,
    builder::Make,
    slot::{Keyed, Look, Slot},
};
use crate::{RetryStrategy, seam::Sequence, strategy::StrategyId, usage::Occupancy};

/// How many scopes one caller looks at if no place is free. A look takes a few cold cache lines. A
/// caller that has spared recently used scopes looks at as many again, without sparing.
const LOOKS: u64 = 32;

/// The most bytes of a key, so that hostile keys cannot fill the memory. The longest resource that
/// AWS throttles fits, a bucket's name with an object's key.
const MAX_KEY_LEN: usize = 1_280;

/// The state that all clones of `Scopes` share.
pub(super) struct Store<S> {
    pub(super) id: StrategyId,
    pub(super) shared: S,
    pub(super) occupancy: Occupancy,
    make: Box<Make<S>>,
    numbers: Sequence,
    map: HashMap<Keyed<S>, ()>,
    /// The states in the map that have no place yet, by number.
    pending: HashMap<u64, Arc<Slot<S>>>,
    /// The queue of states with a place, except states that are being looked at.
    line: SegQueue<Arc<Slot<S>>>,
}

impl<S: RetryStrategy + 'static> Store<S> {
    pub(super) fn new(make: Box<Make<S>>, shared: S, max_scopes: u64) -> Self {
        Self {
            id: StrategyId::new(),
            shared,
            occupancy: Occupancy::new(max_scopes),
            make,
            numbers: Sequence::starting_at(1),
            map: HashMap::new(),
            pending: HashMap::new(),
            line: SegQueue::new(),
        }
    }

    /// Enters the state of `key`, or returns `None` if there is none.
    pub(super) fn find(&self, key: &str) -> Option<Arc<Slot<S>>> {
        let slot = self.find_pending(key)?;
        if slot.usage.is_placed() || self.place(&slot) {
            return Some(slot);
        }
        self.withdraw(&slot);
        None
    }

    /// Does the same as [`find`](Self::find), but the state may be without a place.
    fn find_pending(&self, key: &str) -> Option<Arc<Slot<S>>> {
        let map = self.map.pin();
        let (Keyed(slot), ()) = map.get_key_value(key)?;
        slot.usage.enter().then(|| Arc::clone(slot))
    }

    /// Enters the state of `key`, which is created if there is none.
    pub(super) fn enter(&self, key: &str) -> Result<Arc<Slot<S>>, ScopeRefused> {
        let (len, max) = (key.len(), MAX_KEY_LEN);
        let slot = if len > max {
            Err(ScopeRefused::KeyTooLong { len, max })
        } else {
            match self.find_pending(key) {
                Some(slot) if slot.usage.is_placed() => Ok(slot),
                Some(slot) => self.with_place(slot),
                None => self.create(key),
            }
        };
        if slot.is_err() {
            self.occupancy.note_refusal();
        }
        slot
    }

    #[cold]
    fn create(&self, key: &str) -> Result<Arc<Slot<S>>, ScopeRefused> {
        // Makes room first, so that no strategy is made in vain.
        while self.occupancy.is_full(self.occupancy.taken()) {
            // When the store was seen full, each state with a place was in the map.
            if let Some(slot) = self.find_pending(key) {
                return self.with_place(slot);
            }
            self.evict()?;
        }
        let strategy = (self.make)(Some(key))?;
        let number = self.numbers.next();
        let slot = Arc::new(Slot::entered(number, self.id, key, strategy));
        self.pending.pin().insert(number, Arc::clone(&slot));
        while !self.put(&slot) {
            if let Some(other) = self.find_pending(key) {
                self.pending.pin().remove(&number);
                return self.with_place(other); // another thread has created it meanwhile
            }
        }
        self.with_place(slot)
    }

    /// Puts `slot` into the map, or returns `false` if its key has a live state.
    fn put(&self, slot: &Arc<Slot<S>>) -> bool {
        let map = self.map.pin();
        // `compute` would be one step, but it leaves a growing map in pieces. A look-up in a
        // million then took five times as long.
        loop {
            if map.try_insert(Keyed(Arc::clone(slot)), ()).is_ok() {
                return true;
            }
            let gone = |Keyed(there): &Keyed<S>, (): &()| there.usage.is_retired();
            if let Err(_live) = map.remove_if(&*slot.key, gone) {
                return false;
            }
        }
    }

    /// Makes sure that `slot`, which the caller has entered, has its place. If need be, evicts an
    /// idle scope.
    #[cold]
    fn with_place(&self, slot: Arc<Slot<S>>) -> Result<Arc<Slot<S>>, ScopeRefused> {
        // Withdraws the slot even if the user's strategy panics.
        let mut entered = Entered {
            store: self,
            slot: &slot,
            kept: false,
        };
        while !self.place(&slot) {
            self.evict()?;
        }
        entered.kept = true;
        drop(entered);
        Ok(slot)
    }

    /// Takes a place for `slot`, which the caller has entered, unless it has a place. Returns
    /// `false` if other states have all places.
    #[cold]
    fn place(&self, slot: &Arc<Slot<S>>) -> bool {
        loop {
            let seen = self.occupancy.taken();
            // This check follows the load, so the slot had no place when `seen` was loaded.
            if seen.last() == slot.number || slot.usage.is_placed() {
                self.note_place(slot);
                return true;
            }
            if self.occupancy.is_full(seen) {
                return false;
            }
            // If the last state is no longer pending, its place is noted.
            if let Some(last) = self.pending.pin().get(&seen.last()) {
                self.note_place(last);
            }
            self.occupancy.take(seen, slot.number);
        }
    }

    /// Notes that `slot` has its place. The first caller puts the slot into the queue.
    fn note_place(&self, slot: &Arc<Slot<S>>) {
        if !slot.usage.is_placed() && slot.usage.place() {
            self.pending.pin().remove(&slot.number);
            self.line.push(Arc::clone(slot));
        }
    }

    /// Ends the use of `slot`, which got no place. The last user takes the slot out of the map.
    fn withdraw(&self, slot: &Arc<Slot<S>>) {
        if slot.usage.leave_unplaced() {
            self.pending.pin().remove(&slot.number);
            self.take_out(slot);
        }
    }

    /// Drops an idle scope, which frees a place.
    ///
    /// # Errors
    ///
    /// Returns [`ScopeRefused::Full`] if no idle scope is found.
    fn evict(&self) -> Result<(), ScopeRefused> {
        let looks = self.occupancy.taken().count().min(LOOKS);
        for sparing in [true, false] {
            let mut is_any_spared = false;
            for _ in 0..looks {
                match self.look_at_the_first(sparing) {
                    Some(Look::Retired) => return Ok(()),
                    Some(Look::Spared) => is_any_spared = true,
                    Some(Look::Kept) | None => {}
                }
            }
            if !is_any_spared {
                break;
            }
        }
        let max = usize::try_from(self.occupancy.most()).unwrap_or(usize::MAX);
        Err(ScopeRefused::Full { max })
    }

    /// Takes the first state out of the queue, and drops the state if it is idle. Otherwise the
    /// state goes last. Returns `None` if the queue is empty.
    fn look_at_the_first(&self, sparing: bool) -> Option<Look> {
        let slot = self.line.pop()?;
        // The state goes last even if the user's strategy panics.
        let first = Looked {
            line: &self.line,
            slot,
        };
        let look = first.slot.retire(sparing);
        if look == Look::Retired {
            self.forget(&first.slot);
        }
        Some(look)
    }

    /// Takes a retired state out of the map, unless another state has replaced it, and gives its
    /// place back.
    fn forget(&self, slot: &Arc<Slot<S>>) {
        self.occupancy.note_eviction();
        self.take_out(slot);
        self.occupancy.give_back();
    }

    fn take_out(&self, slot: &Arc<Slot<S>>) {
        let map = self.map.pin();
        let _ = map.remove_if(&*slot.key, |Keyed(there), ()| Arc::ptr_eq(there, slot));
    }

    /// Drops every idle scope, and returns their number.
    pub(super) fn evict_idle(&self) -> usize {
        let looks = 0..self.line.len();
        let is_retired = |_: &usize| self.look_at_the_first(false) == Some(Look::Retired);
        looks.filter(is_retired).count()
    }

    /// Drops the state of `key`, idle or not. Returns `false` if the state is in use or missing.
    pub(super) fn remove(&self, key: &str) -> bool {
        let map = self.map.pin();
        let Some((Keyed(slot), ())) = map.get_key_value(key) else {
            return false;
        };
        if !slot.usage.retire_unlooked() {
            return false;
        }
        self.forget(slot);
        // The state is still in the queue. Two looks for each removal keep the retired states there
        // from outnumbering the live states.
        for _ in 0..2 {
            let line = &self.line;
            drop(line.pop().map(|slot| Looked { line, slot }));
        }
        true
    }

    /// Looks at every state that has its place.
    pub(super) fn for_each(&self, mut look: impl FnMut(&str, &S)) {
        let map = self.map.pin();
        let live = |Keyed(slot): &&Keyed<S>| slot.usage.is_placed() && !slot.usage.is_retired();
        let live = map.keys().filter(live);
        live.for_each(|Keyed(slot)| look(&slot.key, &slot.strategy));
    }

    /// Counts the scopes in use, one by one.
    pub(super) fn count_in_use(&self) -> usize {
        let map = self.map.pin();
        map.keys()
            .filter(|Keyed(slot)| slot.usage.is_used())
            .count()
    }
}

/// A use of a state, which ends on drop unless it is kept.
struct Entered<'a, S: RetryStrategy + 'static> {
    store: &'a Store<S>,
    slot: &'a Arc<Slot<S>>,
    kept: bool,
}

impl<S: RetryStrategy + 'static> Drop for Entered<'_, S> {
    fn drop(&mut self) {
        if !self.kept {
            self.store.withdraw(self.slot);
        }
    }
}

/// A state that has been taken out of the queue. On drop it goes last unless it is retired.
struct Looked<'a, S> {
    line: &'a SegQueue<Arc<Slot<S>>>,
    slot: Arc<Slot<S>>,
}

impl<S> Drop for Looked<'_, S> {
    fn drop(&mut self) {
        if !self.slot.usage.is_retired() {
            self.line.push(Arc::clone(&self.slot));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Standard;

    #[test]
    fn a_state_is_seen_from_its_place_to_its_retirement() {
        let make = Box::new(|_: Option<&str>| Ok(Standard::new()));
        let store = Store::new(make, Standard::new(), 1);
        let slot = Arc::new(Slot::entered(1, store.id, "a", Standard::new()));
        let is_seen = || {
            let mut is_seen = false;
            store.for_each(|key, _| is_seen |= key == "a");
            is_seen
        };
        assert!(store.put(&slot));
        assert!(!is_seen(), "it has no place yet");
        assert!(store.place(&slot));
        assert!(is_seen());
        slot.usage.leave();
        assert!(slot.usage.retire_unlooked());
        assert!(!is_seen(), "it is in the map still");
    }
}
