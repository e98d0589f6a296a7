#!/usr/bin/env python3
"""How the files of a folder stand on each other: floors.py FOLDER:FLOORS:UPWARD...

A floor is a file or folder of FOLDER that imports the floors below it. An arrow is upward if it closes a circle. Fails
if a folder has more floors or more upward arrows than FLOORS and UPWARD.
"""
import re
import sys
from pathlib import Path

LEFT_OUT = {"mod", "lib", "modelled", "mocked", "stall"}


def code(path):
    """The code of a file, without comments, strings and what follows its first module of tests."""
    text = re.sub(r'"(?:[^"\\]|\\.)*"|//.*', "", path.read_text())
    return re.split(r"#\[cfg\((?:all\()?test\b[^\n]*\]\s*mod\b", text)[0]


def expand(tree):
    """Every path of a tree of imports."""
    head, brace, inner = tree.partition("{")
    if not brace:
        return [re.sub(r"\s+as\s+\w+|\s", "", tree)]
    parts = re.findall(r"(?:[^,{}]|\{(?:[^{}]|\{[^{}]*\})*\})+", inner.rpartition("}")[0])
    return [re.sub(r"\s", "", head) + path for part in parts if part.strip() for path in expand(part)]


def paths(text):
    uses = re.compile(r"\buse\s+([^;]+);")
    for tree in uses.findall(text):
        yield from expand(tree)
    yield from re.findall(r"\b(?:crate|super|self)(?:::\w+)+", uses.sub("", text))


def imports(folder):
    """The siblings that each file or folder imports, by their paths or by a name that the folder exports again."""
    files = {}
    for file in sorted(folder.rglob("*.rs")):
        name = file.relative_to(folder).parts[0].removesuffix(".rs")
        if name not in LEFT_OUT and "tests" not in file.with_suffix("").parts:
            files.setdefault(name, []).append(file)
    root = next(path for path in (folder / "mod.rs", folder / "lib.rs") if path.exists())
    exported = {}
    for path in paths(code(root)):
        first, *rest = [part for part in path.split("::") if part not in ("self", "crate")]
        if first in files and rest:
            exported[rest[-1]] = first
    here = folder.parts[folder.parts.index("src") + 1 :]
    arrows = {name: set() for name in files}
    for name, file in ((name, file) for name in files for file in files[name]):
        parts = file.with_suffix("").parts
        at = [part for part in parts[parts.index("src") + 1 :] if part != "mod"]
        for first, *parts in (path.split("::") for path in paths(code(file))):
            if first in ("super", "self"):
                ups = [first, *parts].count("super")
                parts = at[: len(at) - ups] + [part for part in parts if part != "super"]
            elif first != "crate":
                continue
            if tuple(parts[: len(here)]) == here and len(parts) > len(here):
                to = parts[len(here)]
                arrows[name].add(to if to in files else exported.get(to, name))
        arrows[name].discard(name)
    return arrows


def measure(arrows):
    """The longest chain of arrows without those that close a circle, and these arrows."""
    upward, chains = [], {}

    def chain(name, above):
        if name not in chains:
            longest = []
            for to in sorted(arrows[name]):
                if to in (*above, name):
                    upward.append(f"{name} -> {to}")
                else:
                    longest = max(longest, chain(to, (*above, name)), key=len)
            chains[name] = [name, *longest]
        return chains[name]

    return max((chain(name, ()) for name in sorted(arrows)), key=len), upward


complaints = []
for folder, most, circles in (argument.split(":") for argument in sys.argv[1:]):
    floors, upward = measure(imports(Path(folder)))
    print(f"{folder}: {len(floors)} floors ({' > '.join(floors)}), {len(upward)} upward arrows {upward or ''}".rstrip())
    if len(floors) > int(most) or len(upward) > int(circles):
        complaints.append(f"{folder} has more than {most} floors or {circles} upward arrows")
sys.exit("\n".join(complaints) or None)
