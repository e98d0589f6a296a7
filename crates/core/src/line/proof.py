#!/usr/bin/env python3
"""Proves the arithmetic of the line for all inputs, where the models explore schedules.

`Line` below is crates/core/src/line.rs and crates/core/src/line/head.rs once more, over bit-vectors of the same widths.
Each function marked `@statement` is proved for every input in the range that it assumes. That a
wait is exact is proved of whole numbers only, in the lemmas, and neither settling nor aliasing is:
the solver does not come to an end. Products and quotients, which no solver can search, are unknown
functions of which the lemmas hold, and the lemmas are proved first.

Two things keep this honest. Every statement has broken twins of the arithmetic, and fails if the
solver finds no counterexample to one at any of four fixed rates, where products are computed. And
vectors.txt has inputs with the results of this file, which a unit test compares with the crate's.

    crates/core/src/line/proof.py            proves everything
    crates/core/src/line/proof.py --write    writes vectors.txt again
"""

import pathlib
import random
import sys
import time

from z3 import (
    UGE, UGT, ULE, ULT, Z3_OP_BADD, And, BitVec, BitVecVal, Concat, Extract, If, Implies, Ints, LShR, Not, Or, SignExt,
    Solver, SolverFor, UDiv, URem, ZeroExt, is_app_of, sat, simplify, unsat,
)

VECTORS = pathlib.Path(__file__).with_name("vectors.txt")
LIMIT = 300_000  # milliseconds for one statement

TOKEN = 1 << 24
WRAPPED = 1 << (64 + 38)
SKEW = 10**9
FOREVER = (1 << 64) - 1


def u64(value):
    return BitVecVal(value, 64)


def u128(value):
    return BitVecVal(value, 128)


def wide(x):
    """A 64-bit number in 128 bits."""
    return ZeroExt(64, x)


def low(x):
    """`as u64`."""
    return Extract(63, 0, x)


def u104(value):
    return BitVecVal(value, 104)


def wrapped(x):
    """128 bits as a count of 104, the parts of a sum before the sum: a solver finds equal ones."""
    if is_app_of(x, Z3_OP_BADD):
        return sum((wrapped(part) for part in x.children()), u104(0))
    return Extract(103, 0, x)


def counted(x):
    """A count in 128 bits."""
    return ZeroExt(24, x)


def saturating_sub(a, b):
    return If(UGE(a, b), a - b, u64(0))


def saturating_add(a, b):
    return If(ULT(a + b, a), u64(FOREVER), a + b)


def larger(a, b):
    return If(UGE(a, b), a, b)


class Exact:
    """Products and quotients as the processor has them."""

    lemmas, splits = (), False

    def times(self, rate, nanos):
        return wide(rate) * wide(nanos)

    def nanos_for(self, needed, rate):
        return nanos_for(needed, rate)

    def capacity(self, line):
        return line.exact_capacity()


class Unknown:
    """Any products and quotients of which the lemmas hold; any capacity that is one."""

    splits = True

    def __init__(self):
        self.products, self.lemmas = {}, []

    def split(self, rate, whole, part):
        """Takes the product with `whole` for a sum: `part` must be no more than `whole`."""
        one, other = self.times(rate, part), self.times(rate, whole - part)
        self.lemmas.append(distributes(one + other, one, other))
        self.note(rate, whole, one + other)

    def times(self, rate, nanos):
        key = rate.get_id(), nanos.get_id()
        if key not in self.products:
            self.note(rate, nanos, BitVec(f"product{len(self.products)}", 128))
        return self.products[key][2]

    def note(self, rate, nanos, product):
        """Equal factors have equal products."""
        self.lemmas.append(is_bounded(rate, nanos, product))
        for other, time, same in self.products.values():
            self.lemmas.append(Implies(And(rate == other, nanos == time), product == same))
        self.products[rate.get_id(), nanos.get_id()] = rate, nanos, product

    def capacity(self, line):
        capacity = BitVec("capacity", 64)
        self.lemmas.append(is_capacity(capacity, line.rate))
        return capacity


# What the solver knows of products: `lemmas_hold` proves it.


def is_bounded(rate, nanos, product):
    most = (wide(nanos) << 64) - wide(nanos)
    return And(ULE(product, most), Implies(nanos == 1, product == wide(rate)), Implies(UGE(nanos, 2), UGE(product, wide(rate) << 1)))


def distributes(whole, part, rest):
    """The product of a sum is the sum of the products, and is no less than one of them."""
    return And(whole == part + rest, UGE(whole, part))


def is_monotone(case, a, b):
    times = case.numbers.times
    return Implies(UGE(a, b), UGE(times(case.rate, a), times(case.rate, b)))


def is_capacity(capacity, rate):
    """See `a_bucket_holds_what_its_time_brings`."""
    some = And(UGE(capacity, u64(TOKEN)), ULE(capacity, u64(1 << 58)))
    return If(rate == 1, capacity == 0, some)


def nanos_for(needed, rate):
    """`nanos_for`, with both of its divisions."""
    fits = And(Extract(127, 64, needed) == 0, rate != 0)
    short = low(needed)
    nearly = UDiv(short, rate)
    rounded = If(URem(short, rate) != 0, nearly + 1, nearly)
    more = needed + wide(saturating_sub(rate, u64(1)))
    more = If(ULT(more, needed), u128((1 << 128) - 1), more)
    elapsed = UDiv(more, wide(rate))
    long = If(Extract(127, 64, elapsed) == 0, low(elapsed), u64(FOREVER))
    return If(fits, rounded, If(rate == 0, u64(FOREVER), long))


class Line:
    """A line through `minted` at `end`, as `Head` holds it, that is read with `since`."""

    def __init__(self, numbers, rate, burst, since, origin=None):
        self.numbers, self.rate, self.burst, self.since = numbers, rate, burst, since
        self.origin = origin

    # Rate

    @staticmethod
    def excess(raw):
        bits = u64(0)
        for bit in range(64):
            bits = If(Extract(bit, bit, raw) == 1, u64(bit + 1), bits)
        return saturating_sub(bits, u64(44))

    def pack(self, raw):
        return (self.excess(raw) << 44) | LShR(raw, self.excess(raw))

    def unpack(self, bits):
        return (bits & ((1 << 44) - 1)) << (LShR(bits, 44) & 63)

    # Minted and Place

    def tokens_of(self, nanos):
        return self.numbers.times(self.rate, nanos)

    def to_place(self, minted):
        return Extract(103, 40, minted)

    def past_place(self, minted, place):
        """`Minted::since`"""
        return SignExt(24, minted - Concat(place, BitVecVal(0, 40)))

    # Head

    def through(self, minted, end, throttle):
        origin = LShR(counted(minted - wrapped(self.tokens_of(end)) + (1 << 33)), 34)
        coarse, finer = low(LShR(origin, 6)), low(origin)
        return Concat(
            Extract(17, 10, end),
            Extract(5, 0, finer),
            Extract(0, 0, throttle),
            Extract(48, 0, self.pack(self.rate)),
            coarse,
        )

    def of_word(self, word):
        """`Head::line`"""
        coarse, finer = Extract(63, 0, word), Extract(119, 114, word)
        origin = Concat(coarse, finer, BitVecVal(0, 34))
        rate = self.unpack(ZeroExt(15, Extract(112, 64, word)))
        return type(self)(self.numbers, rate, self.burst, self.since, origin)

    # Line

    def extended_to(self, now):
        return self.origin + wrapped(self.tokens_of(now))

    def minted_at(self, now):
        return self.extended_to(larger(now, self.since))

    def has_wrapped(self, now):
        return UGE(self.tokens_of(saturating_sub(now, self.since)), u128(WRAPPED))

    def is_stale(self, now):
        return UGE(self.tokens_of(saturating_sub(now, self.since)), u128(WRAPPED >> 1))

    def is_paused(self):
        return self.rate == 1

    def capacity(self):
        return self.numbers.capacity(self)

    def exact_capacity(self):
        """`capacity`"""
        exact = self.numbers.times(self.rate, self.burst)
        whole = LShR(exact + LShR(exact, 43), 64) << 64
        nearest = larger(whole, exact)
        units = low(LShR(nearest, 40) + (LShR(nearest, 39) & 1))
        return If(self.is_paused(), u64(0), If(UGT(units, u64(TOKEN)), units, u64(TOKEN)))

    def live(self, issued, cancelled):
        """`Place::less_tokens`"""
        return issued - cancelled * TOKEN

    def settled(self, now, issued, cancelled):
        past = self.to_place(self.minted_at(now)) - self.live(issued, cancelled)
        excess = SignExt(1, past) - SignExt(1, self.capacity())
        excess = If(excess < -(1 << 63), u64(1 << 63), Extract(63, 0, excess))
        return If(excess > 0, issued + excess, issued)

    def available(self, now, issued, cancelled):
        balance = self.past_place(self.minted_at(now), self.live(issued, cancelled))
        most = wide(self.capacity()) << 40
        least = If(balance < most, balance, most)
        return If(self.has_wrapped(now), most, If(least < 0, u128(0), least))

    def wait_for(self, now, place):
        """Whether there is a wait, and how long it is."""
        behind = saturating_sub(self.since, now)
        balance = self.past_place(self.minted_at(now), place)
        nanos = saturating_add(self.numbers.nanos_for(-balance, self.rate), behind)
        left = u64(FOREVER) - now
        wait = If(ULT(nanos, left), nanos, left)
        return (
            Or(balance < 0, UGT(behind, u64(SKEW))),
            If(balance < 0, wait, saturating_sub(behind, u64(SKEW))),
        )

    def wait_for_next(self, now, issued, cancelled):
        following = self.settled(now, issued, cancelled) + TOKEN
        is_there, wait = self.wait_for(now, self.live(following, cancelled))
        return If(is_there, wait, u64(1))

    def level(self, now, cancelled):
        """Whether anything may be taken, the last place that is due, and that of a full bucket."""
        nothing = Or(UGT(saturating_sub(self.since, now), u64(SKEW)), self.is_paused())
        due = self.to_place(self.minted_at(now)) + cancelled * TOKEN
        return Not(nothing), due, due - self.capacity()

    # Level

    def take(self, level, issued):
        """Whether a token is taken, and where `issued` moves."""
        holds_any, due, full = level
        is_full = full - issued > 0
        taken = And(holds_any, Or(is_full, due - issued >= TOKEN))
        return taken, If(is_full, full + TOKEN, issued + TOKEN)


class Case:
    """What a statement is about, as a solver is given it."""

    def __init__(self, kind, numbers, rate=None, burst=None):
        self.numbers, self.assumed = numbers, []
        self.rate = self.number("rate") if rate is None else u64(rate)
        self.burst = self.number("burst") if burst is None else u64(burst)
        self.kind = kind

    def number(self, name, bits=64):
        return BitVec(name, bits)

    def minted(self, name):
        return BitVec(name, 104)

    def assume(self, *conditions):
        self.assumed += conditions

    def split(self, whole, part):
        """Uses that `whole`, which is seen to be no less than `part`, has a product that is a sum."""
        if self.numbers.splits and self.refuted(UGE(whole, part)) is None:
            self.numbers.split(self.rate, whole, part)

    def line(self):
        """Any line."""
        return self.kind(self.numbers, self.rate, self.burst, self.number("since"), self.minted("origin"))

    def refuted(self, conclusion):
        """The numbers for which the conclusion is false, `None` if there are none."""
        solver = SolverFor("QF_BV")
        solver.set("timeout", LIMIT)
        solver.add(*self.assumed, *self.numbers.lemmas, Not(conclusion))
        found = solver.check()
        if found not in (sat, unsat):
            raise TimeoutError(solver.reason_unknown())
        return solver.model() if found == sat else None


STATEMENTS = []


def statement(*twins):
    """Notes a statement, with the twins that it must tell from the line."""

    def note(claim):
        STATEMENTS.append((claim, twins))
        return claim

    return note


# The twins: each has one thing broken.


class NarrowProduct(Line):
    def tokens_of(self, nanos):
        return super().tokens_of(nanos) & u128((1 << 96) - 1)


class NoStart(Line):
    def minted_at(self, now):
        return self.extended_to(now)


class RoundedDown(Line):
    def through(self, minted, end, throttle):
        return super().through(minted - (1 << 33), end, throttle)


class Coarse(Line):
    def of_word(self, word):
        return super().of_word(word & ~u128(63 << 114))


class OneBitShort(Line):
    def pack(self, raw):
        return super().pack(raw) & ~u64(1)


class OneUnitEarly(Line):
    def take(self, level, issued):
        holds_any, due, full = level
        return super().take((holds_any, due + 1, full), issued)


class NothingDiscarded(Line):
    def take(self, level, issued):
        holds_any, due, full = level
        return super().take((holds_any, due, full - TOKEN), issued)


class TruncatedCapacity(Line):
    def exact_capacity(self):
        return super().exact_capacity() & u64((1 << 57) - 1)


class NeverEmpty(Line):
    def exact_capacity(self):
        return If(self.is_paused(), u64(TOKEN), super().exact_capacity())


class NoFloor(Line):
    def exact_capacity(self):
        return super().exact_capacity() - 1


class CoarseAvailable(Line):
    def available(self, now, issued, cancelled):
        return super().available(now, issued, cancelled) + u128(1 << 40)


# The statements.


@statement(NarrowProduct)
def the_count_never_goes_back(case):
    """On one line `V` never falls, and stands still before the start of the line.

    For any two times between which the line has not wrapped.
    """
    line, sooner, later = case.line(), case.number("sooner"), case.number("later")
    case.assume(ULE(sooner, later), Not(line.has_wrapped(later)))
    start, end, gain = larger(sooner, line.since), larger(later, line.since), saturating_sub(later, line.since)
    case.split(end, start)
    case.assume(is_monotone(case, gain, end - start))
    first, second = line.minted_at(sooner), line.minted_at(later)
    return And(
        ULT(second - first, u104(WRAPPED)),
        places_passed(line, sooner, later) >= 0,
        Implies(ULE(later, line.since), second == line.minted_at(line.since)),
    )


def places_passed(line, sooner, later):
    return line.to_place(line.minted_at(later)) - line.to_place(line.minted_at(sooner))


@statement(OneBitShort)
def a_word_holds_the_rate(case):
    """The rate is read from the word as it was, as long as it has 44 significant bits at most."""
    line = case.line()
    case.assume(is_rate(case.rate))
    return line.of_word(line.through(case.minted("minted"), case.number("end"), u64(0))).rate == case.rate


@statement(RoundedDown, Coarse)
def a_change_moves_the_count_by_half_a_unit_of_the_origin(case):
    """A line that goes through a count is within 2^-31 of a token of it there, either way.

    So a place is one unit of 2^-24 off at most.
    """
    line, end, minted = case.line(), case.number("end"), case.minted("minted")
    changed = line.of_word(line.through(minted, end, case.number("throttle")))
    changed.rate = case.rate
    ahead = changed.extended_to(end) - minted + (1 << 33)
    places = line.to_place(changed.extended_to(end)) - line.to_place(minted)
    return And(ULE(ahead, u104(1 << 34)), places >= -1, places <= 1)


def is_rate(raw):
    """At most 44 significant bits."""
    return raw & ((u64(1) << Line.excess(raw)) - 1) == 0


@statement(TruncatedCapacity, NeverEmpty, NoFloor)
def a_bucket_holds_what_its_time_brings(case):
    """The capacity is what the burst brings, at least a token, and nothing in a pause.

    For a burst of at most 16 s, whose tokens are under 2^34. It is rounded to 2^-25 of a token,
    or by up to 2^-43 of itself to a whole token.
    """
    line, burst = case.line(), case.burst
    case.assume(ULT(burst, u64(1 << 34)))
    exact, capacity = case.numbers.times(case.rate, burst), line.exact_capacity()
    off = If(UGE(wide(capacity) << 40, exact), (wide(capacity) << 40) - exact, exact - (wide(capacity) << 40))
    most = larger(LShR(exact, 43), u128(1 << 39))
    return And(
        is_capacity(capacity, case.rate),
        Or(line.is_paused(), ULE(off, most), And(capacity == TOKEN, ULE(exact, u128(1 << 64)))),
    )


def is_in_reach(case, line, now, issued, cancelled):
    """`issued` is where words allow it to be: 2^37 tokens ahead of `V`, or 2^38 behind it."""
    past = line.to_place(line.minted_at(now)) - line.live(issued, cancelled)
    case.assume(past >= -(TOKEN << 38), past <= TOKEN << 38)


@statement(OneUnitEarly, NothingDiscarded)
def a_take_is_due_and_leaves_no_more_than_the_capacity(case):
    """A take moves `issued` on by a token or more, to a place that is due.

    What is left in the bucket then is at most the capacity less the token. Nothing is taken
    in a pause, or by a clock that is far behind. A take that finds nothing is right.
    """
    line, now = case.line(), case.number("now")
    issued, cancelled = case.number("issued"), case.number("cancelled")
    is_in_reach(case, line, now, issued, cancelled)
    taken, moved = line.take(line.level(now, cancelled), issued)
    past = line.to_place(line.minted_at(now)) - line.live(issued, cancelled)
    left = line.to_place(line.minted_at(now)) - line.live(moved, cancelled)
    may = And(Not(line.is_paused()), ULE(saturating_sub(line.since, now), u64(SKEW)))
    return And(
        Implies(taken, And(moved - issued >= TOKEN, left >= 0, left <= line.capacity() - TOKEN)),
        taken == And(may, past >= TOKEN),
    )


@statement(CoarseAvailable)
def a_token_that_is_shown_can_be_taken(case):
    """A bucket shows a whole token exactly if a take finds one, and never more than its capacity."""
    line, now = case.line(), case.number("now")
    issued, cancelled = case.number("issued"), case.number("cancelled")
    is_in_reach(case, line, now, issued, cancelled)
    case.assume(Not(line.has_wrapped(now)), case.rate != 1, ULE(line.since, now))
    shown = line.available(now, issued, cancelled)
    taken, _ = line.take(line.level(now, cancelled), issued)
    return And(UGE(shown, u128(1 << 64)) == taken, ULE(shown, wide(line.capacity()) << 40))


def lemmas_hold():
    """Proves the lemmas of whole numbers, which no product here outgrows: 128 bits hold them all."""
    rate, a, b, needed, nanos = Ints("rate a b needed nanos")
    most = (1 << 64) - 1
    words = [And(x >= 0, x <= most) for x in (rate, a, b)]
    quotient, rest = Ints("quotient rest")
    divided = And(rate > 0, needed > 0, rest >= 0, rest < rate, quotient >= 0)
    enough = And(rate * nanos >= needed, rate * nanos - rate < needed, nanos > 0)
    yield "is_bounded", words, And(rate * a >= 0, rate * a <= most * a, rate * 1 == rate, Implies(a >= 2, rate * a >= rate + rate))
    yield "distributes", [*words, a >= b], And(rate * a >= rate * b, rate * a - rate * b == rate * (a - b))
    yield "is_monotone", [*words, a >= b], rate * a >= rate * b
    # The two divisions of `nanos_for`, each with what a quotient is.
    short = [divided, needed == rate * quotient + rest, nanos == If(rest > 0, quotient + 1, quotient)]
    long = [divided, needed + rate - 1 == rate * quotient + rest, nanos == quotient]
    yield "a wait by the short division", short, enough
    yield "a wait by the long division", long, enough


def prove():
    """Prints what is proved, and returns what is not."""
    failed = []

    def report(began, name, fault):
        print(f"{time.monotonic() - began:6.1f} s  {name}{': ' + fault if fault else ''}", flush=True)
        if fault:
            failed.append(name)

    for name, assumed, conclusion in lemmas_hold():
        began, solver = time.monotonic(), Solver()
        solver.set("timeout", LIMIT)
        solver.add(*assumed, Not(conclusion))
        found = solver.check()
        report(began, name, "" if found == unsat else f"not proved, {found}")
    for claim, twins in STATEMENTS:
        began, case = time.monotonic(), Case(Line, Unknown())
        try:
            found = case.refuted(claim(case))
            report(began, claim.__name__, "" if found is None else f"is false: {found}")
        except TimeoutError as fault:
            report(began, claim.__name__, f"not proved, {fault}")
        for twin in twins:
            began = time.monotonic()
            found = any(is_told_apart(claim, twin, rate, burst) for rate, burst in TOLD_APART)
            report(began, f"    fails for {twin.__name__}", "" if found else "no counterexample")
    return failed


# Rates and bursts with which a solver finds counterexamples: true products are hard to search.
TOLD_APART = [(1 << 62, 10**9), ((1 << 44) - 1, 10**9), (1, 10**9), ((1 << 64) - (1 << 20), 10**10)]


def is_told_apart(claim, twin, rate, burst):
    case = Case(twin, Exact(), rate, burst)
    try:
        return case.refuted(claim(case)) is not None
    except TimeoutError:
        return False


# The tie to the crate.


def vectors():
    """Inputs at corners and between them, with what the functions make of them."""
    rng = random.Random(1)

    def size(bits):
        return rng.getrandbits(rng.randint(1, bits))

    for index in range(320):
        rate = size(64)
        rate = rate >> max(0, rate.bit_length() - 44) << max(0, rate.bit_length() - 44)
        rate = [rate, rate, rate, 0, 1, (1 << 64) - (1 << 20)][rng.randrange(6)]
        minted = rng.choice([rng.getrandbits(104), size(70), (1 << 104) - 1 - size(70)])
        end = size(62)
        burst = rng.choice([10**9, 10**10, 5 * 10**7, size(34)])
        since = end + rng.choice([0, 0, size(30)])
        now = max(0, since + rng.choice([0, 1, size(36), size(50), -size(31), -size(40)]))
        cancelled = rng.choice([0, size(8), size(64)])
        # Near a full bucket, a dry one, or what is due.
        due = (minted >> 40) + (rate * max(0, now - end) >> 40) + cancelled * TOKEN
        full = (rate * burst >> 40) if rng.random() < 0.5 else 0
        issued = (due - full + rng.choice([0, 1, -1, -TOKEN, size(30), -size(30), size(64)])) % (1 << 64)
        yield minted, end, rate, index & 1, burst, since, now, issued, cancelled


def results(minted, end, rate, throttle, burst, since, now, issued, cancelled):
    """What the crate is to make of the inputs, as the words of one line."""
    through = Line(Exact(), u64(rate), u64(burst), u64(since))
    word = through.through(u104(minted), u64(end), u64(throttle))
    line = through.of_word(word)
    now, issued, cancelled = u64(now), u64(issued), u64(cancelled)
    level = line.level(now, cancelled)
    taken, to = line.take(level, issued)
    waits, wait = line.wait_for(now, line.live(issued, cancelled))
    outcome = [
        word,
        line.extended_to(now),
        line.minted_at(now),
        line.capacity(),
        line.settled(now, issued, cancelled),
        If(taken, to, issued),
        If(waits, wait, u64(0)),
        line.wait_for_next(now, issued, cancelled),
        line.available(now, issued, cancelled),
        If(line.is_stale(now), u64(1), u64(0)) + If(line.has_wrapped(now), u64(1), u64(0)),
    ]
    return [simplify(x).as_long() for x in outcome]


def vectors_text():
    lines = [" ".join(f"{x:x}" for x in (*inputs, *results(*inputs))) for inputs in vectors()]
    return "\n".join(lines) + "\n"


def main():
    if sys.argv[1:] == ["--write"]:
        VECTORS.write_text(vectors_text())
        return
    if VECTORS.read_text() != vectors_text():
        sys.exit(f"{VECTORS.name} is not what this file computes: see --write")
    if failed := prove():
        sys.exit("failed: " + ", ".join(failed))


if __name__ == "__main__":
    main()
