/*
 * Liveness of the waiting line: a waiter that is polled is served in the end.
 *
 * loom and shuttle look for a bad state. A waiter that sleeps for good is none: each state of it is
 * as good as the one before. spin looks for a run without an end in which the waiter is never
 * served, though each thread that can go on does so some time (weak fairness). The steps are those
 * of `waiters.rs`, `wake.rs` and `wait/place.rs`, one for each access to a shared word,
 * sequentially consistent. `ci/liveness.sh` runs it.
 *
 * The rate is slow at first: no token is minted, and a timer set by it is late for good. One thread
 * makes it fast and walks, as `record` does. From then on tokens are minted by time, and a timer
 * set since fires in time (rule 7). A place is one token.
 *
 * Without STOPS no late timer fires, so that only waking serves who stood before the change: the
 * walk of the change wakes the first MOST, and the walk of each that leaves wakes the next. With
 * STOPS one thread stops at any step, for good: then the chain of walks may be cut, and the late
 * timers, which fire in the end, serve the others. No place is given up there: a waiter that stops in
 * the middle of that is one that stands.
 *
 * BROKEN takes a part away. Each such twin has a run without an end:
 *   1 no second look after a waiter took its stand     2 a waiter is not noted in `front`
 *   3 a claim does not walk                            4 a place given up does not walk
 *   5 notes are not counted                            6 late timers do not fire (STOPS)
 *   7 `front` is moved by a store                      8 the walk comes before the change
 */
#define WAITERS 2
#define MOST 1 /* as wake.rs, where it is 2: one waiter fewer than there are */
#ifndef BROKEN
#define BROKEN 0
#endif

#define SLOTS WAITERS /* no lap: loom has that */
#if BROKEN == 5
#define NOTES 1
#else
#define NOTES 16 /* more than there can be during one walk */
#endif
#define FREE 0
#define GAP 8 /* above a place that was given up */

bool fast;
byte minted;
byte issued;
byte slot[SLOTS]; /* place, or GAP + place */
byte timer[SLOTS]; /* 0; or when the timer fires, in tokens; LATE if it was set by the slow rate */
bool woken[SLOTS]; /* the waker was called */
byte front, notes; /* one word */
byte tail;
bool has_stopped;
bool over[WAITERS]; /* served, gone or stopped */

#define LATE 7

/* A thread may stop here for good. */
#ifdef STOPS
#define STEP if :: skip :: atomic { !has_stopped -> has_stopped = 1 }; goto stopped fi;
#else
#define STEP
#endif

/* n: the tokens given up before place p. A count that is late only delays: loom has how it is made. */
inline count(p) {
    d_step {
        n = 0; j = 0;
        do
        :: j < SLOTS ->
            if :: slot[j] > GAP && slot[j] < GAP + p -> n++ :: else fi;
            j++
        :: else -> break
        od;
        j = 0
    }
}

/* Moves `front` to the first slot that has to be looked at, and wakes who is late. */
inline walk() {
    atomic { f = front; seen = notes; t = tail; k = f; held = SLOTS; ahead = 0 }
    do
    :: atomic { k == t || ahead >= MOST -> break }
    :: atomic { k < t && ahead < MOST ->
            if
            :: timer[k] != 0 && slot[k] != FREE && slot[k] < GAP ->
                count(slot[k]);
                if
                :: minted + n >= slot[k] -> timer[k] = 0; woken[k] = 1 /* due */
                :: else ->
                    ahead++;
                    /* Late, or later than its turn is by the fast rate. */
                    if :: fast && timer[k] + n > slot[k] -> timer[k] = 0; woken[k] = 1 :: else fi
                fi
            :: else
            fi;
            n = 0;
            /* Here the same step as the visit: who stands in between is noted, and the swap fails. */
            if :: held == SLOTS && (timer[k] != 0 || slot[k] > GAP || ahead >= MOST) -> held = k :: else fi;
            k++
        }
        STEP
    od;
    STEP
    atomic {
        if :: held == SLOTS -> held = t :: else fi;
#if BROKEN == 7
        front = held;
#else
        if :: front == f && notes == seen -> front = held :: else fi;
#endif
        ahead = 0; held = 0; f = 0; seen = 0; t = 0; k = 0
    }
}

/* Rule 5. */
inline note(s) {
#if BROKEN == 2
    skip
#else
    atomic {
        if :: s < front -> front = s :: else fi;
        notes = (notes + 1) % NOTES
    }
#endif
}

proctype waiter(byte me; bool leaves) {
    byte place, s, n, j, ahead, held, f, seen, t, k;
    bool was_fast;
    /* The slots are in the order of the places. How two join at once, loom has. */
    atomic { issued++; place = issued; s = tail; tail++; slot[s] = place }
look:
    STEP
    atomic { count(place); if :: minted + n >= place -> n = 0; goto served :: else fi; was_fast = fast }
    STEP
    atomic {
        woken[s] = 0; /* the waker, then the timer, which publishes it */
        timer[s] = (was_fast -> place - n : LATE);
        n = 0
    }
    STEP
    note(s);
#if BROKEN != 1
    STEP
    atomic {
        count(place);
        if :: minted + n >= place -> n = 0; was_fast = 0; goto served :: else fi;
        n = 0;
        if :: was_fast != fast -> was_fast = 0; goto look :: else fi
    }
#endif
    was_fast = 0;
    if
    :: atomic { woken[s] -> woken[s] = 0 }; goto look
    :: atomic { timer[s] != 0 && timer[s] < LATE && minted >= timer[s] }; goto look
#if defined(STOPS) && BROKEN != 6
    :: atomic { timer[s] == LATE && minted == WAITERS }; goto look
#endif
    :: leaves -> goto leave
    fi;
served:
    STEP
    atomic { timer[s] = 0; woken[s] = 0; slot[s] = FREE } /* words that only their owner writes now */
#if BROKEN != 3
    walk();
#endif
    goto stopped;
leave:
    atomic { timer[s] = 0; woken[s] = 0; slot[s] = GAP + place }
    STEP
    note(s);
#if BROKEN != 4
    walk();
#endif
stopped:
    atomic { over[me] = 1; place = 0; s = 0 }
}

proctype change() {
    byte n, j, ahead, held, f, seen, t, k;
#if BROKEN == 8
    walk();
#endif
    STEP
    fast = 1;
#if BROKEN != 8
    walk();
#endif
stopped:
    skip
}

proctype time() {
    do
#ifdef STOPS
    :: minted < WAITERS -> minted++ /* the slow rate mints as well, some time */
#else
    :: atomic { fast && minted < WAITERS -> minted++ }
#endif
    :: minted == WAITERS -> break
    od
}

init {
    byte i;
    atomic {
        i = 0;
        do
        :: i < WAITERS -> run waiter(i, 0); i++
#ifndef STOPS
        :: i < WAITERS -> run waiter(i, 1); i++
#endif
        :: else -> break
        od;
        run change();
        run time()
    }
}

ltl served { <> (over[0] && over[1]) }
