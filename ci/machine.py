#!/usr/bin/env python3
"""Proves that the machine code of the line does what `src/line/proof.py` proves things about.

`proof.py` has the functions of the line once more. Here the crate's own functions are compiled for
x86-64, each is run symbolically over all inputs, and a solver shows for each path that the result
is that of the function in `proof.py`. So what is proved there holds of this code. Products are
unknown functions of their factors, the same on both sides: that the processor multiplies is taken
for granted.

It is a copy that stands alone. Where the functions are inlined the compiler makes the code anew.
Waits are not here: their divisions stay with the lemmas of `proof.py`. The roots of the curve are
not here either. `take` is run over any level, which has a count and a capacity as two others give
them.

Each function is compared with the broken twins of `proof.py`, too: some must not agree.
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
    RoundedDown, Unknown, u64, u128, wide,
)

WORDS = ["low", "high", "since", "burst", "now", "issued", "cancelled"]
INPUT, END = 0x7000_0000, 0x6000_0000


def compiled():
    """The functions as a library, from the crate's own files."""
    into = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "machine"
    shutil.rmtree(into, ignore_errors=True)
    (into / "line").mkdir(parents=True)
    for name in ["bits.rs", "fixed.rs", "line.rs", "line/head.rs"]:
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


def model(name, kind, numbers):
    """What `proof.py` makes of the same words: 128 bits, and what is assumed of them."""
    low, high, since, burst, now, issued, cancelled = (z3.BitVec(word, 64) for word in WORDS)
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
    numbers = Exactly()
    wanted, assumed = model(name, kind, numbers)
    known, cases = {}, []
    for taken, result in runs:
        taken, result = (shared_products(term, numbers, known) for term in (taken, result))
        result = z3.Extract(wanted.size() - 1, 0, result)
        cases.append(z3.And(taken, result != wanted))
    for case in cases:
        solver = z3.SolverFor("QF_BV")
        solver.set("timeout", 600_000)
        solver.add(*assumed, *numbers.lemmas, case)
        found = solver.check()
        if found == z3.sat:
            return solver.model()
        if found == z3.unknown:
            raise TimeoutError(solver.reason_unknown())
    return None


FUNCTIONS = {
    "extended_to": [NarrowProduct, Coarse],
    "minted_at": [NoStart],
    "has_wrapped": [NarrowProduct],
    "is_stale": [NarrowProduct],
    "capacity": [NeverEmpty, NoFloor],
    "spilled": [NoStart, NoFloor],
    "available": [CoarseAvailable],
    "take": [OneUnitEarly, NothingDiscarded],
    "take_spare": [SparesNone],
    "through": [RoundedDown, OneBitShort],
}


def main():
    project, failed = compiled(), []
    for name in sys.argv[1:] or FUNCTIONS:
        twins = FUNCTIONS[name]
        began, runs = time.monotonic(), list(paths(project, name))
        for kind in [Leasing, *twins]:
            try:
                found = difference(name, kind, runs)
                holds = (found is None) == (kind is Leasing)
                text = "agrees on all inputs" if found is None else "differs"
            except TimeoutError as fault:
                holds, text = False, f"not decided: {fault}"
            title = f"{name}, {len(runs)} paths" if kind is Leasing else f"    {kind.__name__}"
            print(f"{time.monotonic() - began:6.1f} s  {title}: {text}{'' if holds else ', WRONG'}", flush=True)
            if not holds:
                failed.append(f"{name} {kind.__name__}")
    if failed:
        sys.exit("failed: " + ", ".join(failed))


if __name__ == "__main__":
    main()
