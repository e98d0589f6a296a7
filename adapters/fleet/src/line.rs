//! The line of a budget: first come, first served, background behind foreground.
//!
//! Only requests that have to wait come here, so it is a plain queue behind a lock. The head takes
//! tokens as they come, until it has its weight: so a heavy request needs no pool that holds all of
//! it at once.

use core::fmt;
use core::sync::atomic::Ordering::Relaxed;
use core::task::Waker;
use core::time::Duration;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use paceline::Timestamp;

use crate::pool::Pool;

/// After so many foreground requests in a row a background one goes, if one waits.
const IN_A_ROW: u32 = 20;

#[derive(Debug)]
struct Waiter {
    id: u64,
    weight: u32,
    /// The tokens of all that came up to this one, its own included. Only differences count.
    end: u64,
    waker: Option<Waker>,
}

impl Waiter {
    fn start(&self) -> u64 {
        self.end.wrapping_sub(u64::from(self.weight))
    }
}

/// The waiters of one class, in the order of their ids.
#[derive(Debug, Default)]
struct Row {
    waiters: VecDeque<Waiter>,
    end: u64,
}

impl Row {
    fn push(&mut self, id: u64, weight: u32) {
        self.end = self.end.wrapping_add(u64::from(weight));
        let end = self.end;
        self.waiters.push_back(Waiter {
            id,
            weight,
            end,
            waker: None,
        });
    }

    fn position(&self, id: u64) -> Option<usize> {
        self.waiters.binary_search_by_key(&id, |one| one.id).ok()
    }

    fn get(&mut self, id: u64) -> Option<&mut Waiter> {
        let position = self.position(id)?;
        self.waiters.get_mut(position)
    }

    /// Returns the tokens of all that wait, or of those before `id`.
    fn tokens(&self, before: Option<u64>) -> u64 {
        let Some(first) = self.waiters.front() else {
            return 0;
        };
        let position = before.and_then(|id| self.position(id));
        let waiter = position.and_then(|position| self.waiters.get(position));
        waiter
            .map_or(self.end, Waiter::start)
            .wrapping_sub(first.start())
    }

    fn remove(&mut self, id: u64) {
        let Some(position) = self.position(id) else {
            return;
        };
        let gone = self.waiters.remove(position);
        let Some(gone) = gone.filter(|_| position > 0) else {
            return; // the line begins later
        };
        // It gave up in the middle: those behind it move up.
        let weight = u64::from(gone.weight);
        for behind in self.waiters.range_mut(position..) {
            behind.end = behind.end.wrapping_sub(weight);
        }
        self.end = self.end.wrapping_sub(weight);
    }
}

#[derive(Debug, Default)]
struct Queue {
    foreground: Row,
    background: Row,
    next: u64,
    /// Foreground requests that went since a background one did.
    in_a_row: u32,
    /// The one that has taken some of its tokens: its turn does not end before it has them all.
    saving: Option<u64>,
}

impl Queue {
    fn row(&mut self, background: bool) -> &mut Row {
        if background {
            &mut self.background
        } else {
            &mut self.foreground
        }
    }

    /// Returns the one whose turn it is.
    fn head(&self) -> Option<u64> {
        let first = |row: &Row| row.waiters.front().map(|one| one.id);
        let (one, other) = (first(&self.foreground), first(&self.background));
        let next = if self.in_a_row >= IN_A_ROW {
            other.or(one)
        } else {
            one.or(other)
        };
        self.saving.or(next)
    }

    /// Returns the tokens that go before those of `id`.
    fn ahead(&self, id: u64, background: bool) -> u64 {
        let head = self.head();
        if head == Some(id) {
            return 0;
        }
        if background {
            let before = self.background.tokens(Some(id));
            return self.foreground.tokens(None).saturating_add(before);
        }
        let position = head.and_then(|head| self.background.position(head));
        let head = position.and_then(|position| self.background.waiters.get(position));
        let head = head.map_or(0, |head| u64::from(head.weight));
        self.foreground.tokens(Some(id)).saturating_add(head)
    }

    /// Returns what wakes the head.
    fn waker(&mut self) -> Option<Waker> {
        let head = self.head()?;
        let background = self.foreground.position(head).is_none();
        self.row(background).get(head)?.waker.take()
    }
}

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Line(Mutex<Queue>);

impl Line {
    fn lock(&self) -> MutexGuard<'_, Queue> {
        // Nothing panics with it; and each change of it is whole.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the weight of the request whose turn is next; 0 if none waits.
    pub(crate) fn head_weight(&self) -> u32 {
        let mut queue = self.lock();
        let Some(head) = queue.head() else {
            return 0;
        };
        let background = queue.foreground.position(head).is_none();
        let head = queue.row(background).get(head);
        head.map_or(0, |head| head.weight)
    }

    /// Wakes the head: there are tokens.
    pub(crate) fn wake(&self) {
        let waker = self.lock().waker();
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

/// A place in the line of a pool. Dropped, it is given up, and what was taken for it goes back.
pub(crate) struct Place {
    pool: Arc<Pool>,
    id: u64,
    background: bool,
    weight: u32,
    /// What it has of its weight.
    saved: u32,
}

impl fmt::Debug for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Place")
            .field("weight", &self.weight)
            .field("saved", &self.saved)
            .finish_non_exhaustive()
    }
}

impl Place {
    /// Takes the last place for a request of `weight`, at least 1.
    pub(crate) fn take(pool: &Arc<Pool>, weight: u32, background: bool) -> Self {
        let weight = weight.max(1);
        let id = {
            let mut queue = pool.line.lock();
            let id = queue.next;
            queue.next = id.wrapping_add(1);
            queue.row(background).push(id, weight);
            id
        };
        // Relaxed: counts for requests and the task to read, which publish nothing. A request that
        // reads an old one goes before one that comes at the same time.
        pool.in_line.fetch_add(1, Relaxed);
        pool.waiting.fetch_add(u64::from(weight), Relaxed);
        pool.need.notify_one();
        Self {
            pool: Arc::clone(pool),
            id,
            background,
            weight,
            saved: 0,
        }
    }

    /// Returns nothing once it has all its tokens, which are then its own; or how long that may
    /// take. `waker` is woken when there are tokens for it.
    pub(crate) fn look(&mut self, now: Timestamp, waker: Option<&Waker>) -> Result<(), Duration> {
        let missing = self.weight.saturating_sub(self.saved);
        if missing == 0 {
            return Ok(());
        }
        let mut queue = self.pool.line.lock();
        let is_head = queue.head() == Some(self.id);
        if is_head {
            let taken = self.pool.take_some(now, missing);
            if taken > 0 {
                queue.saving = Some(self.id);
            }
            self.saved = self.saved.saturating_add(taken);
            self.pool.waiting.fetch_sub(u64::from(taken), Relaxed);
            if taken == missing {
                return Ok(());
            }
        }
        if let (Some(own), Some(waker)) = (queue.row(self.background).get(self.id), waker) {
            match &mut own.waker {
                Some(last) => last.clone_from(waker),
                none => *none = Some(waker.clone()),
            }
        }
        let ahead = queue.ahead(self.id, self.background);
        drop(queue);
        let missing = self.weight.saturating_sub(self.saved);
        Err(self.pool.wait_for(ahead.saturating_add(u64::from(missing))))
    }

    /// Ends it: the request goes, with what was taken for it.
    pub(crate) fn goes(mut self) {
        if self.saved == self.weight {
            let mut queue = self.pool.line.lock();
            queue.in_a_row = if self.background {
                0
            } else {
                queue.in_a_row.saturating_add(1)
            };
            drop(queue);
            self.weight = 0;
            self.saved = 0;
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let waker = {
            let mut queue = self.pool.line.lock();
            queue.row(self.background).remove(self.id);
            if queue.saving == Some(self.id) {
                queue.saving = None;
            }
            self.pool.untake(self.saved);
            queue.waker()
        };
        let rest = self.weight.saturating_sub(self.saved);
        self.pool.waiting.fetch_sub(u64::from(rest), Relaxed);
        self.pool.in_line.fetch_sub(1, Relaxed);
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp::from_nanos(1_000_000);

    fn pool(rate: u64) -> Arc<Pool> {
        let pool = Pool::new();
        pool.good_until(Timestamp::from_nanos(u64::MAX));
        pool.set_rate(rate);
        pool.set_hint(Duration::ZERO);
        Arc::new(pool)
    }

    fn place(pool: &Arc<Pool>, weight: u32) -> Place {
        Place::take(pool, weight, false)
    }

    const fn millis(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    #[test]
    fn the_first_goes_first_and_the_wait_is_that_of_all_before() {
        let pool = pool(10_000);
        let [mut one, mut two] = [place(&pool, 1), place(&pool, 2)];
        let next = Duration::from_nanos(1);
        assert_eq!(two.look(NOW, None), Err(millis(200)));
        assert_eq!(one.look(NOW, None), Err(next));
        pool.pour(1);
        assert_eq!(two.look(NOW, None), Err(millis(100)));
        assert_eq!(one.look(NOW, None), Ok(()));
        one.goes();
        assert_eq!(two.look(NOW, None), Err(millis(100)));
        assert_eq!(pool.waiting.load(Relaxed), 2);
    }

    #[test]
    fn a_heavy_request_saves_up_and_gives_back_if_it_is_given_up() {
        let pool = pool(10_000);
        let (mut heavy, mut behind) = (place(&pool, 10), place(&pool, 1));
        for poured in 1..=3 {
            pool.pour(2);
            let rest = 10 - 2 * poured;
            assert_eq!(heavy.look(NOW, None), Err(millis(100 * (rest - 1))));
            assert_eq!(pool.waiting.load(Relaxed), rest + 1);
        }
        assert!(behind.look(NOW, None).is_err());
        drop(heavy);
        assert_eq!((pool.available(), pool.waiting.load(Relaxed)), (6, 1));
        assert_eq!(behind.look(NOW, None), Ok(()));
        behind.goes();
        assert_eq!((pool.available(), pool.waiting.load(Relaxed)), (5, 0));
    }

    #[test]
    fn one_that_gives_up_in_the_middle_shortens_the_wait_of_those_behind() {
        let pool = pool(1_000);
        let _first = place(&pool, 3);
        let (middle, mut last) = (place(&pool, 4), place(&pool, 1));
        assert_eq!(last.look(NOW, None), Err(millis(7_000)));
        drop(middle);
        assert_eq!(last.look(NOW, None), Err(millis(3_000)));
    }

    #[test]
    fn background_goes_last_and_is_one_of_21() {
        let pool = pool(1_000);
        let mut behind = Place::take(&pool, 1, true);
        let mut went = 0;
        pool.pour(100);
        loop {
            let mut one = place(&pool, 1);
            if one.look(NOW, None).is_err() {
                break;
            }
            one.goes();
            went += 1;
        }
        assert_eq!(went, 20);
        assert_eq!(behind.look(NOW, None), Ok(()));
    }

    #[test]
    fn whatever_waiters_do_each_token_goes_once_and_one_of_them_gets_through() {
        for seed in 0..100 {
            let mut random = fastrand::Rng::with_seed(seed);
            let pool = pool(1_000);
            let (mut places, mut poured, mut went): (Vec<Place>, _, _) = (Vec::new(), 0, 0);
            let mut look = |places: &mut Vec<Place>, index: usize| {
                if places[index].look(NOW, None).is_ok() {
                    let place = places.remove(index);
                    went += place.weight;
                    place.goes();
                }
                went
            };
            for _ in 0..1_000 {
                let went = match random.u32(..10) {
                    0..4 => {
                        places.push(Place::take(&pool, random.u32(1..20), random.bool()));
                        look(&mut places, 0)
                    }
                    4 if !places.is_empty() => {
                        drop(places.remove(random.usize(..places.len())));
                        continue;
                    }
                    5 => {
                        let tokens = random.u32(..20);
                        pool.pour(tokens);
                        poured += tokens;
                        continue;
                    }
                    _ if !places.is_empty() => {
                        let index = random.usize(..places.len());
                        look(&mut places, index)
                    }
                    _ => continue,
                };
                let saved: u32 = places.iter().map(|place| place.saved).sum();
                assert_eq!(poured, went + saved + pool.available(), "seed {seed}");
                let rest = |place: &Place| u64::from(place.weight - place.saved);
                let waiting = places.iter().map(rest).sum::<u64>();
                assert_eq!(pool.waiting.load(Relaxed), waiting, "seed {seed}");
            }
            while !places.is_empty() {
                let before = places.len();
                pool.pour(20);
                for index in (0..before).rev() {
                    look(&mut places, index);
                }
                assert!(places.len() < before, "seed {seed}: none gets through");
            }
        }
    }

    #[test]
    fn only_the_head_is_woken() {
        use core::sync::atomic::AtomicU32;
        #[derive(Default)]
        struct Woken(AtomicU32);
        impl std::task::Wake for Woken {
            fn wake(self: Arc<Self>) {
                self.0.fetch_add(1, Relaxed);
            }
        }
        let pool = pool(1_000);
        let woken = [Arc::new(Woken::default()), Arc::new(Woken::default())];
        let mut places = [place(&pool, 1), place(&pool, 1)];
        for (place, woken) in places.iter_mut().zip(&woken) {
            let waker = Waker::from(Arc::clone(woken));
            assert!(place.look(NOW, Some(&waker)).is_err());
        }
        let counts = || [&woken[0], &woken[1]].map(|woken| woken.0.load(Relaxed));
        pool.pour(1);
        assert_eq!(counts(), [1, 0]);
        let [mut first, _second] = places;
        assert_eq!(first.look(NOW, None), Ok(()));
        first.goes();
        assert_eq!(counts(), [1, 1]);
    }
}
