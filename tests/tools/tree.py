"""The files of the repository, and its diagnostics catalogue, for the scripts that check them."""

import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
_SKIPPED = {".git", "build", ".cache", "__pycache__"}
_ROW = re.compile(r'KILN_DIAG\(\s*(\w+),\s*"([^"]*)",\s*(\w+),\s*((?:"(?:[^"\\]|\\.)*"\s*)+)\)')


def files(*suffixes):
    """Paths relative to the root, sorted: what git tracks or would track, else what lies there."""
    argv = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    try:
        done = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, check=False)
        names = done.stdout.split("\n") if done.returncode == 0 else None
    except OSError:
        names = None
    if names is None:
        found = (p.relative_to(ROOT) for p in ROOT.rglob("*"))
        names = [str(p) for p in found if not _SKIPPED.intersection(p.parts)]
    names = sorted({n for n in names if n and (ROOT / n).is_file()})
    return [Path(n) for n in names if not suffixes or Path(n).suffix in suffixes]


def text(path):
    return (ROOT / path).read_text(encoding="utf-8", errors="replace")


@dataclass
class CatalogueRow:
    path: Path
    line: int
    name: str
    id: str
    severity: str  # "error", "warning", "note"
    message: str


def catalogue():
    """Every KILN_DIAG row of src/diag/catalogue_*.def."""
    rows = []
    for path in files(".def"):
        if not path.name.startswith("catalogue_"):
            continue
        body = text(path)
        for match in _ROW.finditer(body):
            line = body.count("\n", 0, match.start()) + 1
            message = "".join(re.findall(r'"((?:[^"\\]|\\.)*)"', match[4]))
            rows.append(CatalogueRow(path, line, match[1], match[2], match[3].lower(), message))
        if body.count("KILN_DIAG(") != sum(row.path == path for row in rows):
            raise SystemExit(f"{path}: a row that is not KILN_DIAG(Name, \"id\", Severity, \"text\")")
    return rows


if __name__ == "__main__":  # tree.py SUFFIX...: the files that have one of them
    import sys

    print("\n".join(str(path) for path in files(*sys.argv[1:])))
