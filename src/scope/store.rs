//! The bounded map: finding, creating and evicting.

use alloc::{boxed::Box, sync::Arc};

use crossbeam_queue::SegQueue;
use papaya::HashMap;

use super::{
    ScopeRefused,
    builder::Make,
    slot::{Keyed, Slot},
};
use crate::{RetryStrategy, StrategyId, atomic::occupancy::Occupancy};

/// How many scopes one caller looks at for want of a place, first sparing those used lately and then again without.
const LOOKS: u64 = 32;

/// What all clones of `Scopes` share.
pub(super) struct Store<S> {
    pub(super) id: StrategyId,
    pub(super) shared: S,
    pub(super) max_key_len: usize,
    pub(super) occupancy: Occupancy,
    make: Box<Make<S>>,
    map: HashMap<Keyed<S>, ()>,
    /// Every state in the map, but for those that somebody is creating, or looking at.
    line: SegQueue<Arc<Slot<S>>>,
}

impl<S: RetryStrategy + 'static> Store<S> {
    pub(super) fn new(make: Box<Make<S>>, shared: S, max_scopes: u64, max_key_len: usize) -> Self {
        Self {
            id: StrategyId::new(),
            shared,
            max_key_len,
            occupancy: Occupancy::new(max_scopes),
            make,
            map: HashMap::new(),
            line: SegQueue::new(),
        }
    }

    /// Enters the state of `key`, or returns `None` if there is none.
    pub(super) fn find(&self, key: &str) -> Option<Arc<Slot<S>>> {
        let map = self.map.pin();
        let (Keyed(slot), ()) = map.get_key_value(key)?;
        slot.usage().enter().then(|| Arc::clone(slot))
    }

    /// Enters the state of `key`, which is created if there is none.
    pub(super) fn enter(&self, key: &str) -> Result<Arc<Slot<S>>, ScopeRefused> {
        let (len, max) = (key.len(), self.max_key_len);
        let slot = if len > max {
            Err(ScopeRefused::KeyTooLong { len, max })
        } else {
            self.find(key).map_or_else(|| self.create(key), Ok)
        };
        if slot.is_err() {
            self.occupancy.note_refusal();
        }
        slot
    }

    #[cold]
    fn create(&self, key: &str) -> Result<Arc<Slot<S>>, ScopeRefused> {
        let place = self.place()?;
        let strategy = (self.make)(Some(key))?;
        let slot = Arc::new(Slot::entered(self.id, key, strategy));
        while !self.put(&slot) {
            if let Some(other) = self.find(key) {
                return Ok(other); // who has created it meanwhile
            }
        }
        place.keep();
        self.line.push(Arc::clone(&slot));
        Ok(slot)
    }

    /// Puts `slot` into the map, or returns false if there is a state of its key that is not retired.
    fn put(&self, slot: &Arc<Slot<S>>) -> bool {
        let map = self.map.pin();
        // Not by `compute`, which is one step, but leaves a map that grows in pieces: a look-up in a million took five
        // times as long.
        loop {
            if map.try_insert(Keyed(Arc::clone(slot)), ()).is_ok() {
                return true;
            }
            let gone = |Keyed(there): &Keyed<S>, (): &()| there.usage().is_retired();
            if let Err(_live) = map.remove_if(slot.key(), gone) {
                return false;
            }
        }
    }

    /// Takes a place, if need be from an idle scope.
    fn place(&self) -> Result<Place<'_>, ScopeRefused> {
        if self.occupancy.take() || self.evict() {
            return Ok(Place(Some(&self.occupancy)));
        }
        let max = usize::try_from(self.occupancy.most()).unwrap_or(usize::MAX);
        Err(ScopeRefused::Full { max })
    }

    /// Drops an idle scope and returns true, with its place for the caller; or finds none.
    fn evict(&self) -> bool {
        let looks = self.occupancy.taken().min(LOOKS);
        [true, false]
            .into_iter()
            .any(|sparing| (0..looks).any(|_| self.look_at_the_first(sparing)))
    }

    /// Takes the first out of the line, and drops it and returns true if it is idle. Else it stands last.
    fn look_at_the_first(&self, sparing: bool) -> bool {
        let Some(slot) = self.line.pop() else {
            return false;
        };
        if slot.retire(sparing) {
            self.forget(&slot);
            return true;
        }
        if !slot.usage().is_retired() {
            self.line.push(slot);
        }
        false
    }

    /// Takes a retired state out of the map, if another of its key has not replaced it yet.
    fn forget(&self, slot: &Arc<Slot<S>>) {
        self.occupancy.note_eviction();
        let map = self.map.pin();
        let _ = map.remove_if(slot.key(), |Keyed(there), ()| Arc::ptr_eq(there, slot));
    }

    /// Drops every idle scope, and returns how many there were.
    pub(super) fn evict_idle(&self) -> usize {
        let dropped = (0..self.line.len()).filter(|_| self.look_at_the_first(false));
        dropped.inspect(|_| self.occupancy.give_back()).count()
    }

    /// Drops the state of `key`, idle or not, and returns true; or false if it is in use or there is none.
    pub(super) fn remove(&self, key: &str) -> bool {
        let map = self.map.pin();
        let Some((Keyed(slot), ())) = map.get_key_value(key) else {
            return false;
        };
        if !slot.usage().retire_unlooked() {
            return false;
        }
        self.forget(slot);
        self.occupancy.give_back();
        // It stands in the line still. By two looks for each, no more of those wait there than there are live ones.
        (0..2).for_each(|_| self.tidy());
        true
    }

    /// Lets the first of the line go if it is retired. Else it stands last.
    fn tidy(&self) {
        let first = self.line.pop();
        if let Some(slot) = first.filter(|slot| !slot.usage().is_retired()) {
            self.line.push(slot);
        }
    }

    /// Looks at every state that is not retired.
    pub(super) fn for_each(&self, mut look: impl FnMut(&str, &S)) {
        let map = self.map.pin();
        let live = map.keys().filter(|Keyed(slot)| !slot.usage().is_retired());
        live.for_each(|Keyed(slot)| look(slot.key(), slot.strategy()));
    }

    /// Counts the scopes in use, one by one.
    pub(super) fn count_in_use(&self) -> usize {
        let map = self.map.pin();
        map.keys()
            .filter(|Keyed(slot)| slot.usage().is_used())
            .count()
    }
}

/// A place that is given back unless it is kept.
struct Place<'a>(Option<&'a Occupancy>);

impl Place<'_> {
    fn keep(mut self) {
        self.0 = None;
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        if let Some(occupancy) = self.0 {
            occupancy.give_back();
        }
    }
}
