#!/usr/bin/env python3
"""The README of each adapter, tried from an empty crate: its dependencies are those of the toml blocks, and each
block of Rust is a program of it. Blocks without `main` are wrapped as documentation tests are. Arguments pick adapters;
`--run` also runs the blocks that are not marked `no_run`. What the tests of the documentation do not see is whether the
dependencies and features that a README names are enough.
"""
import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TARGET = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
# A README whose Rust is a fragment.
OTHERS = ["fleet"]


def blocks(text):
    """Yields the kind and the text of each code block."""
    for match in re.finditer(r"^```([^\n]*)\n(.*?)^```$", text, re.M | re.S):
        yield match[1].split(","), match[2]


def program(block):
    """Returns a block as a program: lines that documentation hides are part of it."""
    lines = [re.sub(r"^# ?", "", line) if re.match(r"#( |$)", line) else line for line in block.splitlines()]
    text = "\n".join(lines) + "\n"
    return text if "fn main(" in text else "fn main() {\n" + text + "}\n"


def changed(dependencies, text):
    """Returns the dependencies with those lines in place of what has the same names."""
    for line in text.splitlines():
        name = line.split(" = ")[0]
        dependencies, count = re.subn(rf"^{re.escape(name)} = .*$", lambda _: line, dependencies, flags=re.M)
        dependencies += "" if count else line + "\n"
    return dependencies


def crate(adapter):
    """Writes the crate of a README. Returns its folder and the names of the programs to be run."""
    folder = TARGET / "readmes" / adapter
    examples = folder / "examples"
    examples.mkdir(parents=True, exist_ok=True)
    for old in examples.iterdir():
        old.unlink()
    dependencies, runs, number = None, [], 0
    for kinds, text in blocks((ROOT / "adapters" / adapter / "README.md").read_text()):
        if kinds[0] == "toml":
            dependencies = text if dependencies is None else changed(dependencies, text)
        elif kinds[0] == "rust" and "ignore" not in kinds:
            number += 1
            (examples / f"block{number}.rs").write_text(program(text))
            if "no_run" not in kinds:
                runs.append(f"block{number}")
    if dependencies is None or number == 0:
        sys.exit(f"{adapter}: the README has no dependencies or no Rust")
    dependencies = dependencies.replace("../paceline", str(ROOT))
    (folder / "src").mkdir(exist_ok=True)
    (folder / "src/lib.rs").write_text("")
    package = f'[package]\nname = "readme-{adapter}"\nversion = "0.0.0"\nedition = "2024"\n\n{dependencies}\n[workspace]\n'
    (folder / "Cargo.toml").write_text(package)
    return folder, runs


def main():
    arguments = sys.argv[1:]
    run = "--run" in arguments
    picked = [name for name in arguments if name != "--run"]
    known = sorted(file.parent.name for file in (ROOT / "adapters").glob("*/README.md"))
    if unknown := set(picked) - set(known):
        sys.exit(f"no adapter with a README: {', '.join(sorted(unknown))}; there are {', '.join(known)}")
    environment = dict(os.environ, CARGO_TARGET_DIR=str(TARGET / "user"))
    failed = []
    for adapter in picked or [name for name in known if name not in OTHERS]:
        folder, runs = crate(adapter)
        command = ["cargo", "check", "--examples", "--manifest-path", str(folder / "Cargo.toml")]
        passed = subprocess.run(command, env=environment).returncode == 0
        for name in runs if run and passed else []:
            command = ["cargo", "run", "--manifest-path", str(folder / "Cargo.toml"), "--example", name]
            passed = subprocess.run(command, env=environment).returncode == 0 and passed
        print(f"{adapter}: {'passes' if passed else 'FAILS'}", flush=True)
        failed += [] if passed else [adapter]
    sys.exit(1 if failed else 0)


main()
