"""The command line of a script that generates a document: it writes it, or says whether it is out of date."""

import argparse
from pathlib import Path

import tree


def is_current(path, text):
    return (tree.ROOT / path).exists() and tree.text(path) == text


def main(about, path, document):
    """`document(kiln)` is the text that `path`, relative to the repository, should have."""
    parser = argparse.ArgumentParser(description=about.split("\n")[0])
    parser.add_argument("--kiln", type=Path, required=True, help="the binary that gives the examples")
    parser.add_argument("--check", action="store_true", help="change nothing; 1 if out of date")
    options = parser.parse_args()
    text = document(options.kiln.resolve())
    if options.check:
        current = is_current(path, text)
        print(f"{path}: {'up to date' if current else 'out of date, run `./dev docs`'}")
        return 0 if current else 1
    (tree.ROOT / path).write_text(text, encoding="utf-8")
    print(f"wrote {path}")
    return 0
