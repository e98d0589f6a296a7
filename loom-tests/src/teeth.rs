//! Twins of the core with mistakes made on purpose: each model here must fail.
//!
//! The mistakes are those of published retry quotas and limiters. The assertion is the one of the
//! model that guards the real code against the same mistake.

use loom::{
    model,
    sync::{
        Arc,
        atomic::{AtomicU32, AtomicU64, Ordering::SeqCst},
    },
    thread,
};

/// A quota whose steps are several accesses; not even `SeqCst` makes one step of them.
struct BrokenQuota {
    available: AtomicU32,
    capacity: u32,
}

impl BrokenQuota {
    fn holding(available: u32, capacity: u32) -> Arc<Self> {
        Arc::new(Self {
            available: AtomicU32::new(available),
            capacity,
        })
    }

    /// Two takers may both load the last token before either stores what is left.
    fn load_then_store_acquire(&self, cost: u32) -> bool {
        let Some(left) = self.available.load(SeqCst).checked_sub(cost) else {
            return false;
        };
        self.available.store(left, SeqCst);
        true
    }

    /// Two gains may both see room for one.
    fn check_then_add_credit(&self, amount: u32) {
        if self.available.load(SeqCst).saturating_add(amount) <= self.capacity {
            self.available.fetch_add(amount, SeqCst);
        }
    }

    /// Of two gains that load the same count, the second to store wipes out the first.
    fn load_then_store_credit(&self, amount: u32) {
        let sum = self.available.load(SeqCst).saturating_add(amount);
        self.available.store(sum.min(self.capacity), SeqCst);
    }
}

/// Runs `work` on two threads at once and returns what both answered.
fn twice<T: 'static>(
    quota: &Arc<BrokenQuota>,
    work: impl Fn(&BrokenQuota) -> T + Copy + 'static,
) -> (T, T) {
    let shared = Arc::clone(quota);
    let other = thread::spawn(move || work(&shared));
    let here = work(quota);
    (other.join().expect("the other thread returns"), here)
}

#[test]
#[should_panic(expected = "3 of 5 tokens are granted once")]
fn an_acquire_that_loads_then_stores_shares_a_token() {
    model(|| {
        let quota = BrokenQuota::holding(5, 5);
        let (theirs, ours) = twice(&quota, |q| q.load_then_store_acquire(3));
        assert!(theirs != ours, "3 of 5 tokens are granted once");
    });
}

#[test]
#[should_panic(expected = "never above the capacity")]
fn a_credit_that_checks_then_adds_overfills() {
    model(|| {
        let quota = BrokenQuota::holding(3, 5);
        twice(&quota, |q| q.check_then_add_credit(2));
        assert!(
            quota.available.load(SeqCst) <= quota.capacity,
            "never above the capacity"
        );
    });
}

#[test]
#[should_panic(expected = "nothing is lost")]
fn a_credit_that_loads_then_stores_loses_one() {
    model(|| {
        let quota = BrokenQuota::holding(1, 5);
        twice(&quota, |q| q.load_then_store_credit(2));
        assert_eq!(quota.available.load(SeqCst), 5, "nothing is lost");
    });
}

/// A change of capacity that also brings what is available under it, in a separate step.
#[test]
#[should_panic(expected = "a permit that is out finds room")]
fn a_capacity_kept_beside_what_is_available_loses_what_is_out() {
    model(|| {
        // Seven available of ten, three out; the capacity goes to five and comes back to ten.
        let quota = BrokenQuota::holding(7, 10);
        let shared = Arc::clone(&quota);
        let other = thread::spawn(move || {
            let seen = shared.available.load(SeqCst);
            shared.available.store(seen.min(5), SeqCst);
        });
        quota.available.fetch_add(3, SeqCst);
        other.join().expect("the other thread returns");
        assert_eq!(
            quota.available.load(SeqCst),
            10,
            "a permit that is out finds room"
        );
    });
}

/// A budget that checks two counts and then adds to one of them.
#[test]
#[should_panic(expected = "one request allows one retry")]
fn a_budget_that_checks_then_adds_grants_twice() {
    model(|| {
        let retries = Arc::new(AtomicU32::new(0));
        let take = |retries: &AtomicU32| {
            retries.load(SeqCst) < 1 && retries.fetch_add(1, SeqCst) < u32::MAX
        };
        let shared = Arc::clone(&retries);
        let other = thread::spawn(move || take(&shared));
        let ours = take(&retries);
        let theirs = other.join().expect("the other thread returns");
        assert!(!(theirs && ours), "one request allows one retry");
    });
}

/// What is announced when it changes, looked at and then stored.
#[test]
#[should_panic(expected = "one of them tells")]
fn a_note_that_looks_then_stores_is_told_twice() {
    model(|| {
        let so = Arc::new(AtomicU32::new(0));
        let note = |so: &AtomicU32| {
            let news = so.load(SeqCst) == 0;
            so.store(1, SeqCst);
            news
        };
        let shared = Arc::clone(&so);
        let other = thread::spawn(move || note(&shared));
        let ours = note(&so);
        let theirs = other.join().expect("the other thread returns");
        assert!(theirs != ours, "one of them tells");
    });
}

/// A limiter that forgets its throttle in two steps: that there was one, and what was promised
/// since.
#[test]
#[should_panic(expected = "limited or not, as it shows")]
fn a_throttle_forgotten_in_two_steps_is_half_forgotten() {
    model(|| {
        let (engaged, limits) = (Arc::new(AtomicU32::new(1)), Arc::new(AtomicU32::new(1)));
        let (shared, limited) = (Arc::clone(&engaged), Arc::clone(&limits));
        let other = thread::spawn(move || {
            shared.store(0, SeqCst);
            limited.store(0, SeqCst);
        });
        engaged.store(1, SeqCst);
        limits.store(1, SeqCst);
        other.join().expect("the other thread returns");
        let seen = (engaged.load(SeqCst), limits.load(SeqCst));
        assert_eq!(seen.0, seen.1, "limited or not, as it shows");
    });
}

/// Settings whose edition is counted up by a load and a store: two changes may make one edition.
#[test]
#[should_panic(expected = "two changes are two editions")]
fn an_edition_that_loads_then_stores_hides_a_change() {
    model(|| {
        let edition = Arc::new(AtomicU32::new(0));
        let change = |edition: &AtomicU32| {
            let next = edition.load(SeqCst) + 1;
            edition.store(next, SeqCst);
        };
        let shared = Arc::clone(&edition);
        let other = thread::spawn(move || change(&shared));
        change(&edition);
        other.join().expect("the other thread returns");
        assert_eq!(edition.load(SeqCst), 2, "two changes are two editions");
    });
}

/// A send bucket that keeps tokens and the time of the last refill in two words.
struct BrokenRate {
    tokens: AtomicU32,
    refilled: AtomicU32,
}

impl BrokenRate {
    /// Mints a token for each second since the last refill. Two threads may both mint the same
    /// seconds.
    fn refill_then_take(&self, now: u32) -> bool {
        let refilled = self.refilled.load(SeqCst);
        self.tokens.fetch_add(now.saturating_sub(refilled), SeqCst);
        self.refilled.store(now, SeqCst);
        let taken = self.tokens.load(SeqCst).checked_sub(1);
        taken.is_some_and(|left| {
            self.tokens
                .compare_exchange(left + 1, left, SeqCst, SeqCst)
                .is_ok()
        })
    }
}

#[test]
#[should_panic(expected = "one token makes one grant")]
fn a_refill_of_two_words_mints_twice() {
    model(|| {
        let rate = Arc::new(BrokenRate {
            tokens: AtomicU32::new(0),
            refilled: AtomicU32::new(0),
        });
        let shared = Arc::clone(&rate);
        let other = thread::spawn(move || shared.refill_then_take(1));
        let ours = rate.refill_then_take(1);
        let theirs = other.join().expect("the other thread returns");
        assert!(!(theirs && ours), "one token makes one grant");
    });
}

/// A line whose threads do one step each: what is wrong here is wrong without a race, but the
/// assertions are those of the models, and must notice.
#[derive(Default)]
struct BrokenLine {
    issued: AtomicU32,
    given_up: AtomicU32,
    minted: AtomicU32,
    refilled: AtomicU32,
}

impl BrokenLine {
    fn shared() -> Arc<Self> {
        Arc::new(Self::default())
    }

    /// Moves the time of the refill back when an older clock comes, so that the same seconds are
    /// minted again.
    fn refill_by_any_clock(&self, now: u32) {
        let elapsed = now.wrapping_sub(self.refilled.swap(now, SeqCst));
        self.minted.fetch_add(elapsed.min(10), SeqCst);
    }

    /// Moves the time by all that has passed, though only whole tokens (two seconds each) are
    /// minted.
    fn refill_without_remainder(&self, now: u32) {
        let elapsed = now.saturating_sub(self.refilled.fetch_max(now, SeqCst));
        self.minted.fetch_add(elapsed / 2, SeqCst);
    }

    fn reserve(&self) -> u32 {
        self.issued.fetch_add(1, SeqCst) + 1
    }

    /// A place given up is forgotten: its token is a hole in the line.
    fn is_due_past_the_hole(&self, place: u32) -> bool {
        self.minted.load(SeqCst) >= place
    }

    /// A place given up moves everybody up, those ahead of it too.
    fn is_due_with_a_longer_line(&self, place: u32) -> bool {
        self.minted.load(SeqCst) + self.given_up.load(SeqCst) >= place
    }

    fn give_up(&self) {
        self.given_up.fetch_add(1, SeqCst);
    }
}

/// A line in one word, origin above rate, whose time of the last change is raised after the swap.
struct LateSince {
    head: AtomicU64,
    since: AtomicU32,
}

impl LateSince {
    fn minted(head: u64, now: u32) -> u32 {
        let [rate, origin] = [head, head >> 32].map(|half| u32::try_from(half & 0xffff_ffff));
        let [rate, origin] = [rate, origin].map(|half| half.expect("32 bits"));
        origin.wrapping_add(rate.wrapping_mul(now))
    }

    fn change(&self, now: u32, rate: u32) {
        let head = self.head.load(SeqCst);
        let end = self.since.load(SeqCst).max(now);
        let origin = Self::minted(head, end).wrapping_sub(rate.wrapping_mul(end));
        let next = (u64::from(origin) << 32) | u64::from(rate);
        let swapped = self.head.compare_exchange(head, next, SeqCst, SeqCst);
        if swapped.is_ok() {
            self.since.fetch_max(end, SeqCst);
        }
    }
}

#[test]
#[should_panic(expected = "at most five a second")]
fn a_time_raised_after_the_swap_mints_twice() {
    model(|| {
        let line = Arc::new(LateSince {
            head: AtomicU64::new(5),
            since: AtomicU32::new(0),
        });
        on_two(&line, |l| l.change(3, 1), |l| l.change(1, 5));
        let minted = LateSince::minted(line.head.load(SeqCst), 3);
        assert!(minted <= 15, "at most five a second");
    });
}

/// Runs `one` and `two` on a thread each.
fn on_two<T: Send + Sync + 'static>(
    shared: &Arc<T>,
    one: impl FnOnce(&T) + 'static,
    two: impl FnOnce(&T) + 'static,
) {
    let (first, second) = (Arc::clone(shared), Arc::clone(shared));
    let one = thread::spawn(move || one(&first));
    let two = thread::spawn(move || two(&second));
    one.join().expect("the thread returns");
    two.join().expect("the thread returns");
}

#[test]
#[should_panic(expected = "three seconds mint three tokens")]
fn an_older_clock_that_moves_time_back_mints_again() {
    model(|| {
        let line = BrokenLine::shared();
        on_two(
            &line,
            |l| l.refill_by_any_clock(3),
            |l| l.refill_by_any_clock(2),
        );
        line.refill_by_any_clock(3);
        assert!(
            line.minted.load(SeqCst) <= 3,
            "three seconds mint three tokens"
        );
    });
}

#[test]
#[should_panic(expected = "no remainder is lost")]
fn a_refill_without_its_remainder_loses_tokens() {
    model(|| {
        let line = BrokenLine::shared();
        on_two(
            &line,
            |l| l.refill_without_remainder(1),
            |l| l.refill_without_remainder(2),
        );
        assert_eq!(line.minted.load(SeqCst), 1, "no remainder is lost");
    });
}

#[test]
#[should_panic(expected = "those behind move up")]
fn a_hole_in_the_line_keeps_those_behind_waiting() {
    model(|| {
        let line = BrokenLine::shared();
        let (_first, second) = (line.reserve(), line.reserve());
        on_two(&line, BrokenLine::give_up, |l| {
            l.minted.fetch_add(1, SeqCst);
        });
        assert!(line.is_due_past_the_hole(second), "those behind move up");
    });
}

#[test]
#[should_panic(expected = "no place ahead moves up")]
fn a_line_made_longer_lets_those_ahead_go() {
    model(|| {
        let line = BrokenLine::shared();
        let (first, _second) = (line.reserve(), line.reserve());
        on_two(&line, BrokenLine::give_up, |_| {});
        assert!(
            !line.is_due_with_a_longer_line(first),
            "no place ahead moves up"
        );
    });
}

/// Waiters, and the first slot at which one may stand. A walk moves that on even if a thread
/// has come meanwhile.
struct UncountedFront {
    front: AtomicU32,
    stands: [AtomicU32; 2],
}

impl UncountedFront {
    const NONE: u32 = 2;

    fn stand(&self, at: u32) {
        self.stands[at as usize].store(1, SeqCst);
        let front = self.front.load(SeqCst);
        if front > at {
            let _ = self.front.compare_exchange(front, at, SeqCst, SeqCst);
        }
    }

    fn walk(&self) -> u32 {
        let front = self.front.load(SeqCst);
        let stands = |at: &u32| self.stands[*at as usize].load(SeqCst) == 1;
        let found = (front..Self::NONE).find(stands).unwrap_or(Self::NONE);
        let _ = self.front.compare_exchange(front, found, SeqCst, SeqCst);
        found
    }
}

#[test]
#[should_panic(expected = "the next walk finds it")]
fn a_walk_that_counts_none_leaves_a_waiter_behind() {
    model(|| {
        let line = Arc::new(UncountedFront {
            front: AtomicU32::new(0),
            stands: [AtomicU32::new(0), AtomicU32::new(0)],
        });
        let shared = Arc::clone(&line);
        let other = thread::spawn(move || shared.stand(1));
        line.walk();
        other.join().expect("the other thread returns");
        assert_eq!(line.walk(), 1, "the next walk finds it");
    });
}

/// A pair that is written word by word in its place.
#[test]
#[should_panic(expected = "both words are of one value")]
fn a_pair_written_in_its_place_is_read_torn() {
    model(|| {
        let pair = Arc::new([AtomicU32::new(0), AtomicU32::new(0)]);
        let shared = Arc::clone(&pair);
        let writer = thread::spawn(move || {
            for word in shared.iter() {
                word.store(1, SeqCst);
            }
        });
        let [first, second] = [0, 1].map(|index: usize| pair[index].load(SeqCst));
        assert_eq!(first, second, "both words are of one value");
        writer.join().expect("the writer returns");
    });
}

/// Reports taken in the order in which they come.
#[test]
#[should_panic(expected = "that of the later send stays")]
fn a_report_taken_by_arrival_lets_the_older_one_stay() {
    model(|| {
        let left = Arc::new(AtomicU32::new(50));
        let shared = Arc::clone(&left);
        let reporter = thread::spawn(move || shared.store(30, SeqCst));
        left.store(20, SeqCst);
        reporter.join().expect("the reporter returns");
        assert_eq!(left.load(SeqCst), 20, "that of the later send stays");
    });
}

/// A declared limit whose sends, reports and edge are steps of their own.
struct BrokenLimit {
    /// What the last report said was left, and how many were sent until then.
    left: AtomicU64,
    position: AtomicU64,
    sent: AtomicU64,
    version: AtomicU64,
    /// Up to where requests may go without a look, and by which version: the low half.
    edge: AtomicU64,
}

impl BrokenLimit {
    fn with(left: u64) -> Arc<Self> {
        Arc::new(Self {
            left: AtomicU64::new(left),
            position: AtomicU64::new(0),
            sent: AtomicU64::new(0),
            version: AtomicU64::new(1),
            edge: AtomicU64::new(0),
        })
    }

    /// Two may both find room for one.
    fn look_then_send(&self) -> bool {
        let goes = self.sent.load(SeqCst) < self.left.load(SeqCst);
        if goes {
            self.sent.fetch_add(1, SeqCst);
        }
        goes
    }

    /// One that is sent between the two stores is no longer counted.
    fn report_then_position(&self, left: u64) {
        self.left.store(left, SeqCst);
        self.position.store(self.sent.load(SeqCst), SeqCst);
    }

    /// One that looks between the two has an edge that is old, and of the new version.
    fn raise_then_report(&self, left: u64) {
        self.version.fetch_add(1, SeqCst);
        self.left.store(left, SeqCst);
    }

    /// Of two that raise the version at once one takes back what the other has raised.
    fn report_then_raise(&self, left: u64) {
        self.left.store(left, SeqCst);
        let next = self.version.load(SeqCst) + 1;
        self.version.store(next, SeqCst);
    }

    /// One that is sent between the two is taken back as well.
    fn look_then_unsend(&self, sent: u64) {
        if self.sent.load(SeqCst) == sent {
            self.sent.store(sent - 1, SeqCst);
        }
    }

    /// Goes by the edge if it is of this version, and by a look otherwise.
    fn send_by_edge(&self) -> bool {
        let version = self.version.load(SeqCst);
        let edge = self.edge.load(SeqCst);
        if edge & 0xff == version && edge >> 8 > 0 {
            return true;
        }
        let left = self.left.load(SeqCst);
        if left > 0 {
            self.edge.store(left << 8 | version, SeqCst);
        }
        left > 0
    }
}

/// `declared::the_last_of_a_burst_is_given_once`.
#[test]
#[should_panic(expected = "one is left")]
fn a_burst_counted_in_two_steps_gives_one_twice() {
    model(|| {
        let gone = Arc::new(AtomicU64::new(1));
        let is_one = |gone: &AtomicU64| {
            let seen = gone.load(SeqCst);
            if seen < 2 {
                gone.store(seen + 1, SeqCst);
            }
            seen < 2
        };
        let shared = Arc::clone(&gone);
        let other = thread::spawn(move || is_one(&shared));
        let mine = is_one(&gone);
        let other = other.join().expect("the other thread returns");
        assert!(mine != other, "one is left");
    });
}

/// `declared::a_set_that_takes_back_beside_a_send_is_not_counted`.
#[test]
#[should_panic(expected = "a send was lost")]
fn a_send_taken_back_in_two_steps_takes_another_back() {
    model(|| {
        let limit = BrokenLimit::with(2);
        let shared = Arc::clone(&limit);
        assert!(limit.look_then_send(), "two are left");
        let other = thread::spawn(move || shared.look_then_send());
        limit.look_then_unsend(1);
        let goes = other.join().expect("the other thread returns");
        let sent = limit.sent.load(SeqCst);
        assert!(sent >= u64::from(goes), "a send was lost");
    });
}

/// `declared::reports_at_once_each_move_the_edge`.
#[test]
#[should_panic(expected = "none is left")]
fn a_version_raised_in_two_steps_comes_back() {
    model(|| {
        let limit = BrokenLimit::with(9);
        let shared = Arc::clone(&limit);
        let other = thread::spawn(move || {
            shared.report_then_raise(7);
            shared.report_then_raise(6);
            shared.send_by_edge()
        });
        limit.report_then_raise(8);
        other.join().expect("the other thread returns");
        limit.report_then_raise(0);
        assert!(!limit.send_by_edge(), "none is left");
    });
}

/// `declared::two_sends_at_the_edge_do_not_both_go`.
#[test]
#[should_panic(expected = "one is left")]
fn two_that_look_and_then_send_both_go() {
    model(|| {
        let limit = BrokenLimit::with(1);
        let shared = Arc::clone(&limit);
        let other = thread::spawn(move || shared.look_then_send());
        let mine = limit.look_then_send();
        let other = other.join().expect("the other thread returns");
        assert!(mine != other, "one is left");
    });
}

/// `declared::a_report_beside_a_send_counts_it_or_not`.
#[test]
#[should_panic(expected = "a send was lost")]
fn a_report_of_two_words_loses_the_send_between() {
    model(|| {
        let limit = BrokenLimit::with(50);
        let shared = Arc::clone(&limit);
        let reporter = thread::spawn(move || shared.report_then_position(50));
        let taken = limit.look_then_send();
        reporter.join().expect("the reporter returns");
        let since = limit.sent.load(SeqCst) - limit.position.load(SeqCst);
        let left = limit.left.load(SeqCst) - since;
        assert_eq!(left, 50 - u64::from(taken), "a send was lost");
    });
}

/// `declared::a_send_beside_a_report_goes_by_one_of_both`.
#[test]
#[should_panic(expected = "none is left")]
fn an_edge_that_outlives_its_report_lets_one_go() {
    model(|| {
        let limit = BrokenLimit::with(1);
        let shared = Arc::clone(&limit);
        let reporter = thread::spawn(move || shared.raise_then_report(0));
        limit.send_by_edge();
        reporter.join().expect("the reporter returns");
        assert!(!limit.send_by_edge(), "none is left");
    });
}
