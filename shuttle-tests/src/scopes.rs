//! The map of scopes under four threads that come, go and evict.
//!
//! Claim: there are never two live states of one key while one is in use, what is in use or engaged
//! is never dropped, and there are never more than allowed; a key for which there is room is never
//! refused, and no scope dropped for it. The map inside is not shuttle's: each of its calls is one
//! step.

use alloc::sync::Arc;
use std::collections::HashMap;

use paceline::{
    Failure, RetryStrategy, RetryToken, Scopes,
    scope::{Scope, ScopeRefused, ScopesBuilder},
    strategy::{ForeignToken, InitialTokenRefused, Reports, RetryRefused, StrategyId},
};
use shuttle::sync::{
    Mutex,
    atomic::{AtomicBool, Ordering::SeqCst},
};

use crate::{explore, on_threads};

const KEYS: [&str; 3] = ["a", "b", "c"];

/// A strategy with one bit of state.
#[derive(Debug)]
struct Bit {
    id: StrategyId,
    engaged: AtomicBool,
}

impl RetryStrategy for Bit {
    fn acquire_initial_token(&self, _: Option<&str>) -> Result<RetryToken, InitialTokenRefused> {
        Ok(RetryToken::new(self.id))
    }

    fn refresh_retry_token(
        &self,
        token: RetryToken,
        _: &Failure,
        _: Reports<'_>,
    ) -> Result<RetryToken, RetryRefused> {
        self.engaged.store(true, SeqCst);
        Ok(self.id.check(token)?)
    }

    fn record_success(&self, token: RetryToken, _: Reports<'_>) -> Result<(), ForeignToken> {
        self.id.check(token).map(drop)
    }

    fn is_idle(&self) -> bool {
        !self.engaged.load(SeqCst)
    }
}

/// Scopes, and which state each key is used with at the moment, by how many.
struct Scene {
    scopes: Scopes<Bit>,
    used: Mutex<HashMap<String, (StrategyId, u32)>>,
}

impl Scene {
    fn with_places(most: usize) -> Arc<Self> {
        let builder = ScopesBuilder::new(|_| {
            Ok(Bit {
                id: StrategyId::new(),
                engaged: AtomicBool::new(false),
            })
        });
        let scopes = builder.max_scopes(most).build().expect("valid settings");
        Arc::new(Self {
            scopes,
            used: Mutex::default(),
        })
    }

    /// Uses the scope of `key` while no thread uses another state of it. False if there is no room.
    fn visit(&self, key: &str, engage: bool) -> bool {
        let scope = match self.scopes.get(key) {
            Ok(scope) => scope,
            Err(ScopeRefused::Full { .. }) => return false,
            Err(other) => panic!("{other}"),
        };
        self.note_arrival(&scope);
        if engage {
            scope.engaged.store(true, SeqCst);
        }
        self.note_departure(&scope);
        true
    }

    fn note_arrival(&self, scope: &Scope<Bit>) {
        let mut used = self.used.lock().expect("no poison");
        let entry = used.entry(scope.key().into()).or_insert((scope.id, 0));
        assert_eq!(entry.0, scope.id, "two live states of one key");
        entry.1 += 1;
    }

    fn note_departure(&self, scope: &Scope<Bit>) {
        let mut used = self.used.lock().expect("no poison");
        let entry = used.get_mut(scope.key()).expect("noted on arrival");
        entry.1 -= 1;
        if entry.1 == 0 {
            used.remove(scope.key());
        }
    }

    fn assert_within_bounds(&self) {
        let now = self.scopes.snapshot();
        assert!(now.scopes <= now.max_scopes, "more than allowed");
    }
}

#[test]
fn there_are_never_two_live_states_of_one_key() {
    explore(3_000, || {
        let scene = Scene::with_places(2);
        on_threads(4, &scene, |scene, thread| {
            for round in 0..3 {
                let index = usize::try_from(thread / 2 + round).expect("small");
                scene.visit(KEYS[index % KEYS.len()], false);
                scene.assert_within_bounds();
            }
        });
        let counted = scene.scopes.snapshot().scopes;
        let left = u64::try_from(scene.scopes.evict_idle()).expect("few");
        assert_eq!(
            (left, scene.scopes.snapshot().scopes),
            (counted, 0),
            "no place is lost"
        );
        for key in KEYS {
            assert!(scene.scopes.find(key).is_none(), "nor a state");
        }
    });
}

#[test]
fn there_are_never_more_than_allowed() {
    explore(2_000, || {
        let scene = Scene::with_places(2);
        on_threads(4, &scene, |scene, thread| {
            let index = usize::try_from(thread).expect("small") % KEYS.len();
            scene.visit(KEYS[index], false);
            scene.assert_within_bounds();
            scene.scopes.remove(KEYS[(index + 1) % KEYS.len()]);
            scene.visit(KEYS[(index + 1) % KEYS.len()], false);
            scene.assert_within_bounds();
        });
        let left = KEYS.iter().filter(|key| scene.scopes.find(key).is_some());
        let left = u64::try_from(left.count()).expect("few");
        assert_eq!(scene.scopes.snapshot().scopes, left);
    });
}

/// The one place is free, and four threads ask for one key.
#[test]
fn a_key_for_which_there_is_room_is_not_refused() {
    explore(3_000, || {
        let scene = Scene::with_places(1);
        let found = on_threads(4, &scene, |scene, _| scene.visit("a", false));
        assert_eq!(found, [true; 4], "there is room");
        let now = scene.scopes.snapshot();
        assert_eq!((now.scopes, now.refused, now.evicted), (1, 0, 0));
        assert_eq!(scene.scopes.evict_idle(), 1, "it stands in the line, once");
        assert_eq!(scene.scopes.evict_idle(), 0);
    });
}

/// As many keys as places, one of them there and idle, each asked for by two threads.
#[test]
fn no_scope_is_dropped_while_there_is_room() {
    explore(3_000, || {
        let scene = Scene::with_places(3);
        assert!(scene.visit("a", false));
        let found = on_threads(4, &scene, |scene, thread| {
            let index = usize::try_from(thread % 2).expect("small");
            scene.visit(KEYS[1 + index], false)
        });
        assert_eq!(found, [true; 4], "there is room");
        let now = scene.scopes.snapshot();
        assert_eq!((now.scopes, now.refused, now.evicted), (3, 0, 0));
        for key in KEYS {
            assert!(scene.scopes.find(key).is_some());
        }
    });
}

/// Two keys want the one place, for two threads each: one of them is refused while the other is in
/// use, and what was refused leaves nothing behind.
#[test]
fn a_refused_key_leaves_no_state_behind() {
    explore(3_000, || {
        let scene = Scene::with_places(1);
        let found = on_threads(4, &scene, |scene, thread| {
            let index = usize::try_from(thread % 2).expect("small");
            let scope = scene.scopes.get(KEYS[index]).ok();
            scene.assert_within_bounds();
            scope.is_some()
        });
        assert!(found.contains(&true), "one gets it");
        let now = scene.scopes.snapshot();
        assert_eq!(now.scopes, 1);
        assert_eq!(
            usize::try_from(now.refused).ok(),
            Some(found.iter().filter(|f| !**f).count())
        );
        let there = KEYS.iter().filter(|key| scene.scopes.find(key).is_some());
        assert_eq!(there.count(), 1);
        let mut seen = 0;
        scene.scopes.for_each(|_, _| seen += 1);
        assert_eq!(seen, 1);
        assert_eq!(scene.scopes.evict_idle(), 1);
        assert_eq!(scene.scopes.count_in_use(), 0);
    });
}

/// One thread engages a limiter and goes; the others want its place.
#[test]
fn an_engaged_limiter_is_never_dropped() {
    explore(3_000, || {
        let scene = Scene::with_places(1);
        let engaged = on_threads(4, &scene, |scene, thread| {
            if thread == 0 {
                return scene.visit("a", true);
            }
            scene.visit("b", false);
            scene.visit("a", false);
            false
        });
        if engaged[0] {
            let scope = scene.scopes.find("a").expect("it is not idle");
            assert!(scope.engaged.load(SeqCst), "it was not reset");
        }
    });
}

/// A token in use keeps its scope, whatever the others do, and what it records arrives.
#[test]
fn a_scope_in_use_is_never_dropped() {
    explore(3_000, || {
        let scene = Scene::with_places(1);
        let strategies = on_threads(3, &scene, |scene, thread| {
            if thread > 0 {
                scene.scopes.evict_idle();
                scene.scopes.remove("a");
                scene.visit("b", false);
                return true;
            }
            let token = scene.scopes.acquire_initial_token(Some("a"));
            let token = token.expect("there is always one");
            let scope = scene.scopes.find("a");
            let unscoped = scope.is_none(); // there was no room
            let refreshed =
                scene
                    .scopes
                    .refresh_retry_token(token, &Failure::transient(), Reports::new());
            let token = refreshed.expect("its own token");
            let again = scene.scopes.find("a");
            assert_eq!(again.is_none(), unscoped);
            let ids = [&scope, &again].map(|scope| scope.as_ref().map(|scope| scope.id));
            assert_eq!(ids[0], ids[1], "the same state");
            assert!(again.is_none_or(|scope| scope.engaged.load(SeqCst)));
            scene.scopes.record_success(token, Reports::new()).is_ok()
        });
        assert_eq!(strategies, [true; 3]);
        assert_eq!(scene.scopes.count_in_use(), 0);
    });
}

mod twin {
    //! The same, with the mistakes one is tempted to make. Each test must fail.

    use super::*;

    /// A place for one state that asks whether it is used, and then drops it.
    #[derive(Default)]
    struct CheckThenDrop {
        /// The state's users, and its number; locks stand for a map whose calls are each one step.
        state: Mutex<Option<Arc<Mutex<u32>>>>,
    }

    impl CheckThenDrop {
        fn enter(&self) -> Arc<Mutex<u32>> {
            let state = {
                let mut state = self.state.lock().expect("no poison");
                Arc::clone(state.get_or_insert_default())
            };
            *state.lock().expect("no poison") += 1;
            state
        }

        fn leave(state: &Mutex<u32>) {
            *state.lock().expect("no poison") -= 1;
        }

        fn evict(&self) {
            let found = self.state.lock().expect("no poison").clone();
            let unused = found.is_some_and(|state| *state.lock().expect("no poison") == 0);
            if unused {
                *self.state.lock().expect("no poison") = None;
            }
        }
    }

    #[test]
    #[should_panic(expected = "dropped while in use")]
    fn a_map_that_checks_then_drops_drops_what_is_in_use() {
        explore(1_000, || {
            let map = Arc::new(CheckThenDrop::default());
            on_threads(3, &map, |map, thread| {
                if thread == 0 {
                    return map.evict();
                }
                let state = map.enter();
                let there = map.state.lock().expect("no poison").clone();
                assert!(
                    there.is_some_and(|there| Arc::ptr_eq(&there, &state)),
                    "dropped while in use"
                );
                CheckThenDrop::leave(&state);
            });
        });
    }
}
