"""What the tests of pages share: a headless browser, the page it gives back, and their command line."""

import argparse
import html.parser
import json
import multiprocessing
import os
import shutil
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as xml
from pathlib import Path

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")


class Page(html.parser.HTMLParser):
    """The tables of a page: {caption: [(drawn row, drawn column, classes, attributes, text)]}."""

    def __init__(self, text):
        super().__init__()
        self.text = text
        self.tables = {}
        self.network = []
        self.headers = 0
        self.attributes = {}  # of the elements with an id, and of the body
        self._table = self._row = self._cell = None
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        self.network += [v for k, v in attrs.items() if k in ("src", "href") or "//" in (v or "")]
        if "id" in attrs or tag == "body":
            self.attributes[attrs.get("id", "body")] = attrs
        if tag == "table":
            self._table = self.tables.setdefault(attrs["aria-label"], [])
            self._row = -2
        elif tag == "tr" and self._table is not None:
            self._row, self._column = self._row + 1, 0
        elif tag == "th":
            self.headers += attrs.get("scope") in ("row", "col")
        elif tag == "td" and self._row is not None and self._row >= 0:
            classes = (attrs.get("class") or "").split()
            self._cell = [self._row, self._column, classes, attrs, ""]
            self._table.append(self._cell)
            self._column += 1

    def handle_data(self, data):
        if self._cell is not None:
            self._cell[4] += data

    def handle_endtag(self, tag):
        if tag == "td":
            self._cell = None

    def table(self, word):
        """The first table whose name contains `word`."""
        return next(cells for name, cells in self.tables.items() if word in name)

    def picked(self, word):
        """{(drawn row, drawn column): text} of the picked cells."""
        return {(r, c): text for r, c, classes, _, text in self.table(word) if "on" in classes}


class Browser:
    def __init__(self, program, scratch):
        self.program = program
        self.scratch = Path(scratch)

    def open(self, text, fragment="", script=""):
        """The page after its script, and then `script`, has run."""
        path = self.scratch / "page.html"
        appended = f"<script>{script}</script>" if script else ""
        path.write_text(text.replace("</body>", f"{appended}</body>"), encoding="utf-8")
        argv = [self.program, "--headless", "--no-sandbox", "--disable-gpu", "--dump-dom"]
        argv += ["--disable-dev-shm-usage", "--virtual-time-budget=2000"]
        argv += ["--host-resolver-rules=MAP * ~NOTFOUND", f"--user-data-dir={self.scratch / 'profile'}"]
        argv.append(path.as_uri() + fragment)
        done = subprocess.run(argv, capture_output=True, text=True, timeout=120, check=False)
        if done.returncode != 0 or "<table" not in done.stdout:
            raise AssertionError(f"the browser gave no page:\n{done.stderr[-2000:]}")
        return Page(done.stdout)


def expect(condition, message):
    if not condition:
        raise AssertionError(message)


def find_browser():
    names = [os.environ["CHROMIUM"]] if os.environ.get("CHROMIUM") else BROWSERS
    return next((path for path in map(shutil.which, names) if path), None)


def attempt(check, *arguments):
    """Whether the check passes; prints why not."""
    try:
        check(*arguments)
    except (AssertionError, OSError, subprocess.SubprocessError, xml.ParseError, ValueError) as error:
        print(f"FAIL {check.__name__}\n  {error}", flush=True)
        return False
    return True


_checks = []  # those that this process may be asked for


def _attempt_numbered(number, *arguments):
    return attempt(_checks[number], *arguments)


def attempt_each(checks, *arguments):
    """Whether each check passes: as many at a time as there are processors, each in a process of its own."""
    with multiprocessing.get_context("fork").Pool(initializer=_checks.extend, initargs=(checks,)) as pool:
        numbered = [(number, *arguments) for number in range(len(checks))]
        return pool.starmap(_attempt_numbered, numbered, chunksize=1)


def run(name, kiln, checks, name_filter):
    """[whether each check passed]. `checks`: those that need no browser, and those that do."""
    alone, in_browser = ([check for check in some if name_filter in check.__name__] for some in checks)
    results = attempt_each(alone, kiln)
    program = find_browser()
    if in_browser and program is None:
        print(f"{name}: no Chromium here: the pages are not opened (install `chromium`)")
        must = os.environ.get("CI") == "true"
        return results + [False] * len(in_browser) if must else results
    with tempfile.TemporaryDirectory(prefix="kiln-browser-") as scratch:
        browser = Browser(program, scratch)
        return results + [attempt(check, browser, kiln) for check in in_browser]


def main(doc, alone, in_browser):
    """Runs the checks of a test that says `doc` of itself; its exit code."""
    name = Path(sys.argv[0]).stem
    parser = argparse.ArgumentParser(description=doc.split("\n")[0])
    parser.add_argument("--kiln", type=Path, required=True, help="the binary under test")
    parser.add_argument("--results", type=Path, help="write {passed, failed} here")
    parser.add_argument("filter", nargs="?", default="", metavar="FILTER")
    options = parser.parse_args()
    results = run(name, options.kiln.resolve(), (alone, in_browser), options.filter)
    counts = {"passed": sum(results), "failed": len(results) - sum(results)}
    print(f"{name}: {counts['passed']} passed, {counts['failed']} failed")
    if options.results:
        options.results.write_text(json.dumps(counts), encoding="utf-8")
    return 1 if counts["failed"] else 0
