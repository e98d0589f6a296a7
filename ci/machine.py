#!/usr/bin/env python3
"""Proves that the machine code of the line does what `src/line/proof.py` proves things about, and that
of the published curve what `Curve` below states.

`proof.py` has the functions of the line once more. Here the crate's own functions are compiled for
x86-64, each is run symbolically over all inputs, and a solver shows for each path that the result
is that of the function in `proof.py`. So what is proved there holds of this code. Products are
unknown functions of their factors, the same on both sides: that the processor multiplies is taken
for granted.

It is a copy that stands alone. Where the functions are inlined the compiler makes the code anew.
Waits are not here: their divisions stay with the lemmas of `proof.py`. The roots of the curve are
not here either: when a cut is back at its peak is an input. `take` is run over any level, which has
a count and a capacity as two others give them.

Of the curve it is proved besides that the short way looks at it where the law does, as far as a
stretch goes. How far it is from the true cube no solver can search: `lemmas_hold` bounds it in whole
numbers.

Each function is compared with broken twins, too, and must not agree with any.
"""

import logging
import os
import pathlib
import shutil
import subprocess
import sys
import time

logging.disable(logging.WARNING)
ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "src/line"))

import angr  # noqa: E402
import claripy  # noqa: E402
import z3  # noqa: E402
from proof import (  # noqa: E402
    TOKEN, Coarse, CoarseAvailable, Line, NarrowProduct, NeverEmpty, NoFloor, NoStart, NothingDiscarded, OneBitShort, OneUnitEarly,
    RoundedDown, Unknown, larger, saturating_add, saturating_sub, u64, u128, wide,
)

WORDS = ["low", "high", "since", "burst", "now", "issued", "cancelled"]
INPUT, END = 0x7000_0000, 0x6000_0000


def compiled():
    """The functions as a library, from the crate's own files."""
    into = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "machine"
    shutil.rmtree(into, ignore_errors=True)
    (into / "line").mkdir(parents=True)
    (into / "law").mkdir()
    for name in ["bits.rs", "fixed.rs", "law/cubic.rs", "line.rs", "line/head.rs"]:
        shutil.copy(ROOT / "src" / name, into / name)
    shutil.copy(ROOT / "ci/machine.rs", into / "lib.rs")
    flags = ["--edition=2024", "--crate-type=cdylib", "-Copt-level=3", "-Cpanic=abort", "-Clink-arg=-nostdlib"]
    subprocess.run(["rustc", *flags, "lib.rs", "-o", "libmachine.so"], cwd=into, check=True)
    return angr.Project(str(into / "libmachine.so"), auto_load_libs=False)


def paths(project, name):
    """What a function returns on each of its paths, and when it takes that: 128 bits."""
    words = [claripy.BVS(word, 64, explicit_name=True) for word in WORDS]
    state = project.factory.blank_state(addr=project.loader.find_symbol(name).rebased_addr)
    for index, word in enumerate(words):
        state.memory.store(INPUT + 8 * index, word, endness="Iend_LE")
    state.regs.rdi = INPUT
    state.regs.rsp = 0x7FFF_0000
    state.memory.store(0x7FFF_0000, claripy.BVV(END, 64), endness="Iend_LE")
    state.options.add(angr.options.LAZY_SOLVES)
    manager = project.factory.simulation_manager(state)
    manager.explore(find=END, num_find=1_000)
    if manager.active or manager.errored or not manager.found:
        raise RuntimeError(f"{name}: {manager}")
    z3_of = claripy.backends.z3.convert
    for found in manager.found:
        taken = [z3_of(condition) for condition in found.solver.constraints]
        yield z3.And(taken), z3.Concat(z3_of(found.regs.rdx), z3_of(found.regs.rax))


def shared_products(term, numbers, known):
    """The term with each product in it as the model's numbers have it. `known` keeps each term beside
    its result: a number of a term that is dropped may be used again."""
    if term.get_id() not in known:
        known[term.get_id()] = term, rewritten(term, numbers, known)
    return known[term.get_id()][1]


def rewritten(term, numbers, known):
    if z3.is_app_of(term, z3.Z3_OP_BSHL) and z3.is_app_of(term.arg(0), z3.Z3_OP_BMUL) and term.size() == 64:
        # Of 64 bits, a product that is shifted is the product of either factor shifted.
        (a, b), shift = term.arg(0).children(), term.arg(1)
        if z3.is_bv_value(a):
            return a * shared_products(b << shift, numbers, known)
        one, other = z3.Extract(63, 0, numbers.times(a << shift, b)), z3.Extract(63, 0, numbers.times(a, b << shift))
        numbers.lemmas.append(one == other)
        return one
    children = [shared_products(child, numbers, known) for child in term.children()]
    if z3.is_app_of(term, z3.Z3_OP_BMUL) and not any(z3.is_bv_value(child) for child in children):
        assert len(children) == 2 and term.size() in (64, 128), term
        halves = [z3.simplify(z3.Extract(127, 64, child)) for child in children if term.size() == 128]
        assert all(z3.is_bv_value(half) and half.as_long() == 0 for half in halves), term
        # One instruction makes both halves, and the low one is read as a product of 64 bits.
        product = numbers.times(*(z3.simplify(z3.Extract(63, 0, child)) for child in children))
        return z3.Extract(term.size() - 1, 0, product)
    return term.decl()(*children) if children else term


def model(name, kind, numbers, words):
    """What is stated of the words: 128 bits or less, and what is assumed of them."""
    low, high, since, burst, now, issued, cancelled = words
    if issubclass(kind, Curve):
        return getattr(kind(numbers), name)(low, high, now), []
    word = z3.Concat(high, low)
    # The rate of a word: 44 bits and 5 of exponent, which make 64 bits at most.
    line = kind(numbers, u64(0), burst, since).of_word(word)
    assumed = [z3.ULE(z3.LShR(z3.Extract(112, 64, word), 44), 20), z3.ULT(burst, u64(1 << 34))]
    if name == "through":
        return line.through(z3.Extract(103, 0, z3.Concat(since, burst)), now, issued), assumed[:1]
    narrow = {
        "has_wrapped": lambda: z3.If(line.has_wrapped(now), u64(1), u64(0)),
        "is_stale": lambda: z3.If(line.is_stale(now), u64(1), u64(0)),
        "capacity": line.exact_capacity,
        "spilled": lambda: line.settled(now, issued, cancelled),
    }
    if name in narrow:
        return narrow[name](), assumed
    if name in ("extended_to", "minted_at"):
        return z3.ZeroExt(24, getattr(line, name)(now)), assumed
    if name == "available":
        return line.available(now, issued, cancelled), assumed
    # A level at any count, of any capacity.
    due = line.to_place(z3.Extract(103, 0, word)) + cancelled * TOKEN
    level = z3.BoolVal(True), due, due - burst
    if name == "take":
        taken, moved = line.take(level, issued)
        return z3.If(taken, z3.Concat(u64(1), moved), u128(0)), []
    return line.take_spare(level, issued), []


class Leasing(Line):
    """A line that threads lease from."""

    def take_spare(self, level, issued):
        """All tokens but one, at most 255: how many, and where `issued` moves; or nothing."""
        _, due, full = level
        begin = z3.If(full - issued > 0, full, issued)
        held = z3.If(due - begin > 0, due - begin, u64(0))
        spare = z3.If(z3.UGE(held, u64(TOKEN)), z3.LShR(held - TOKEN, 24), u64(0))
        spare = z3.If(z3.UGT(spare, 255), u64(255), spare)
        return z3.If(spare != 0, z3.Concat(spare, begin + spare * TOKEN), u128(0))


class SparesNone(Leasing):
    def take_spare(self, level, issued):
        holds_any, due, full = level
        return super().take_spare((holds_any, due + TOKEN, full), issued)


class Curve:
    """`src/law/cubic.rs` once more: `C·t³ + peak` and the floor, in 64 bits."""

    HORIZON = 1 << 42
    FLOOR, MAX = 9_223_372_037, ((1 << 44) - 1) << 20
    CUBE_SCALE = 9_807_971_461_541_688_693

    def __init__(self, numbers):
        self.numbers = numbers

    @staticmethod
    def cases(words):
        """All words, by the top bit of the time from the peak: with it known, little is left to solve.

        The longest come first, where the twins differ. Below 2³⁸ the curve is at its peak.
        """
        now, low = words[4], 38
        spans = [z3.Concat(z3.BitVecVal(1, 64 - bit), z3.BitVec("rest", bit)) for bit in reversed(range(low, 63))]
        spans.append(z3.Concat(z3.BitVecVal(0, 64 - low), z3.BitVec("rest", low)))
        for after in [*(-span for span in spans), *spans, u64(1 << 63)]:
            yield [(words[1], (now << 20) - after)]

    def high(self, a, b):
        a, b = z3.simplify(a), z3.simplify(b)
        is_known = z3.is_bv_value(a) and z3.is_bv_value(b)
        return z3.Extract(127, 64, wide(a) * wide(b) if is_known else self.numbers.times(a, b))

    def significand(self, span):
        """Its top bit is set, and how far it was moved for that."""
        zeros = u64(64)
        for bit in range(64):
            zeros = z3.If(z3.Extract(bit, bit, span) == 1, u64(63 - bit), zeros)
        return span << zeros, zeros

    def rise(self, span):
        """`C·span³`, for a span in 2⁻²⁰ ns: `CUBE_SCALE` has 184 fraction bits."""
        significand, zeros = self.significand(span)
        cube = self.high(self.high(significand, significand), significand)
        product = z3.Extract(127, 64, u128(self.CUBE_SCALE) * wide(cube))
        left = wide(product) << wide(12 - 3 * zeros)
        left = z3.If(z3.Extract(127, 64, left) == 0, z3.Extract(63, 0, left), u64((1 << 64) - 1))
        below = z3.LShR(product, 3 * zeros - 13)
        right = z3.If(z3.ULE(3 * zeros, 76), z3.LShR(below, 1) + (below & 1), u64(0))
        return z3.If(span == 0, u64(0), z3.If(z3.ULE(3 * zeros, 12), left, right))

    def rounded(self, raw):
        """To 44 significant bits."""
        excess = Line.excess(raw)
        moved = raw + z3.LShR(u64(1) << excess, 1)
        return z3.If(z3.ULT(moved, raw), u64(self.MAX), z3.LShR(moved, excess) << excess)

    def beside(self, peak, after):
        rises = saturating_add(peak, self.rise(after))
        return self.rounded(z3.If(after < 0, saturating_sub(peak, self.rise(-after)), rises))

    def at_least_floor(self, rate):
        return larger(rate, u64(self.FLOOR))

    def short_way(self, peak, peak_at, now):
        return self.at_least_floor(self.beside(peak, (now << 20) - peak_at))


class NoFloorOfRates(Curve):
    FLOOR = 0


class Truncated(Curve):
    def rounded(self, raw):
        excess = Line.excess(raw)
        return z3.LShR(raw, excess) << excess


class OneWay(Curve):
    def beside(self, peak, after):
        return self.rounded(saturating_add(peak, self.rise(after)))


class Wrapping(Curve):
    def rise(self, span):
        return super().rise(span) & u64((1 << 63) - 1)


def looks_where_the_law_does(within):
    """Whether the short way looks at the curve where the law does, until `within` after a cut.

    The law is flat beyond the horizon, and a stretch ends there.
    """
    peak_time, since, now = (z3.BitVec(word, 64) for word in ["peak_time", "since", "now"])
    elapsed = z3.If(z3.ULT(now - since, Curve.HORIZON), now - since, u64(Curve.HORIZON))
    solver = z3.SolverFor("QF_BV")
    short, law = (now << 20) - ((since << 20) + peak_time), (elapsed << 20) - peak_time
    solver.add(z3.ULE(since, now), z3.ULE(now - since, within), short != law)
    return solver.check() == z3.unsat


def lemmas_hold():
    """Three products that each lose what is beyond their high half lose less than three units in all.

    The last one has 60 bits or more, so that it is right to 2⁻⁵⁸ of itself. A rate has 44 bits.
    """
    s, square, cube, product, lost, true_cube = z3.Ints("s square cube product lost true_cube")
    word, scale = 1 << 64, Curve.CUBE_SCALE

    def is_high(high, product):
        return z3.And(product - high * word >= 0, product - high * word < word)

    yield "lost of the square, times the factor", [s >= 0, s < word, lost >= 0, lost < word], z3.And(s * lost >= 0, s * lost < word**2)
    # `lost` is that, `true_cube` is s³, and `square` is the high half times s.
    halves = [true_cube == square * word + lost, lost >= 0, lost < word**2, is_high(cube, square), is_high(product, scale * cube)]
    off = scale * true_cube - product * word**3
    yield "three products", halves, z3.And(off >= 0, off < 3 * word**3)
    top = [cube >= 1 << 61, is_high(product, scale * cube)]
    yield "the bits of the last one", top, product >= 1 << 60


class Exactly(Unknown):
    """Unknown products, in either order, and the capacity as the code computes it from one."""

    def note(self, rate, nanos, product):
        for other, time, same in list(self.products.values()):
            self.lemmas.append(z3.Implies(z3.And(rate == time, nanos == other), product == same))
        super().note(rate, nanos, product)

    def capacity(self, line):
        return line.exact_capacity()


def difference(name, kind, runs):
    """The words for which the code and the model differ, `None` if there are none."""
    words = [z3.BitVec(word, 64) for word in WORDS]
    for given in kind.cases(words) if issubclass(kind, Curve) else [[]]:
        if (found := difference_of(name, kind, runs, words, given)) is not None:
            return found
    return None


def difference_of(name, kind, runs, words, given):
    """The same where some words are given."""

    def known(term):
        return z3.simplify(z3.substitute(term, *given)) if given else term

    numbers, products = Exactly(), {}
    wanted, assumed = model(name, kind, numbers, [known(word) for word in words])
    for taken, result in runs:
        taken, result = known(taken), known(result)
        if z3.is_false(taken):
            continue
        taken, result = (shared_products(term, numbers, products) for term in (taken, result))
        differs = z3.Extract(wanted.size() - 1, 0, result) != wanted
        # The lemmas are many terms, and seldom wanted.
        for lemmas in [], numbers.lemmas:
            solver = z3.SolverFor("QF_BV")
            solver.set("timeout", 2_400_000)
            solver.add(*assumed, *lemmas, taken, differs)
            found = solver.check()
            if found != z3.sat:
                break
        if found == z3.sat:
            return solver.model()
        if found == z3.unknown:
            raise TimeoutError(solver.reason_unknown())
    return None


# What each must agree with, and the twins that it must not.
FUNCTIONS = {
    "extended_to": [Line, NarrowProduct, Coarse],
    "minted_at": [Line, NoStart],
    "has_wrapped": [Line, NarrowProduct],
    "is_stale": [Line, NarrowProduct],
    "capacity": [Line, NeverEmpty, NoFloor],
    "spilled": [Line, NoStart, NoFloor],
    "available": [Line, CoarseAvailable],
    "take": [Line, OneUnitEarly, NothingDiscarded],
    "take_spare": [Leasing, SparesNone],
    "through": [Line, RoundedDown, OneBitShort],
    "short_way": [Curve, NoFloorOfRates, OneWay, Wrapping, Truncated],
}


def statements():
    """What is proved of the curve besides, each with whether it holds."""
    for name, assumed, conclusion in lemmas_hold():
        solver = z3.Solver()
        solver.set("timeout", 2_400_000)
        solver.add(*assumed, z3.Not(conclusion))
        yield name, solver.check() == z3.unsat
    yield "the short way looks where the law does", looks_where_the_law_does(Curve.HORIZON)
    yield "    and not beyond the horizon", not looks_where_the_law_does(Curve.HORIZON + 1)


def main():
    project, failed = compiled(), []
    for name, holds in statements():
        print(f"{name}: {'holds' if holds else 'WRONG'}", flush=True)
        if not holds:
            failed.append(name)
    for name in sys.argv[1:] or FUNCTIONS:
        exact = FUNCTIONS[name][0]
        began, runs = time.monotonic(), list(paths(project, name))
        for kind in FUNCTIONS[name]:
            try:
                found = difference(name, kind, runs)
                holds = (found is None) == (kind is exact)
                text = "agrees on all inputs" if found is None else "differs"
            except TimeoutError as fault:
                holds, text = False, f"not decided: {fault}"
            title = f"{name}, {len(runs)} paths" if kind is exact else f"    {kind.__name__}"
            print(f"{time.monotonic() - began:6.1f} s  {title}: {text}{'' if holds else ', WRONG'}", flush=True)
            if not holds:
                failed.append(f"{name} {kind.__name__}")
    if failed:
        sys.exit("failed: " + ", ".join(failed))


if __name__ == "__main__":
    main()
