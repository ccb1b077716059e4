#!/usr/bin/env python3
"""Checks that wheels import wherever they say, and labels them for it.

    python3 tests/tools/wheel.py check WHEEL...        # from Ubuntu 22.04 on, without CUDA
    python3 tests/tools/wheel.py label WHEEL...        # check, then give them the tag manylinux_2_35
    python3 tests/tools/wheel.py try PYTHON WHEEL...   # install the one that fits, in a scratch folder, and use it

What a module wants of the system is what `readelf` says: its libraries, and the versions of their symbols.
"""

import base64
import hashlib
import re
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

# glibc 2.35 and libstdc++ of gcc 12, as of Ubuntu 22.04.
NEWEST = {"GLIBC": (2, 35), "GLIBCXX": (3, 4, 30), "CXXABI": (1, 3, 13), "GCC": (12, 0, 0)}
LIBRARIES = {
    "libc.so.6",
    "libm.so.6",
    "libdl.so.2",
    "libpthread.so.0",
    "librt.so.1",
    "libstdc++.so.6",
    "libgcc_s.so.1",
    "ld-linux-x86-64.so.2",
    "ld-linux-aarch64.so.1",
}
LABEL = "manylinux_2_35"
TRY = """
import numpy as np, kiln
source = "__co__ void f(global f32 [N] x, global f32 [N] y) {" \\
    " parallel i by [N] : block { parallel t by [1] : thread { y.at(i) = x.at(i) * 2.0f; } } }"
x, y = np.arange(5, dtype=np.float32), np.zeros(5, np.float32)
assert kiln.compile(source=source, arch="sm_90a").f.simulate(x, y).ok and (y == 2 * x).all()
assert (kiln.ops.gemm.reference(np.ones((2, 3), np.float16), np.ones((3, 2), np.float16)) == 3).all()
x = np.ones((1, 2, 1, 8), np.float16)
assert (kiln.ops.attention.reference(x, x, x) == 1).all()
print("imports and simulates:", kiln.__file__)
"""


def mistakes_of_module(dynamic, versions):
    """What is wrong with a module, from the texts of `readelf -d` and `readelf -V`."""
    out = []
    for library in re.findall(r"\(NEEDED\)[^\[]*\[([^\]]+)\]", dynamic):
        if library not in LIBRARIES:
            out.append(f"needs {library}, which a system need not have")
    if "GLIBC_ABI_DT_RELR" in versions:
        out.append("wants GLIBC_ABI_DT_RELR, which came with glibc 2.36")
    wanted = set(re.findall(r"Name: ([A-Z]+)_([0-9]+(?:\.[0-9]+)*)\b", versions))
    for name, number in sorted(wanted, key=lambda each: (each[0], [int(part) for part in each[1].split(".")])):
        newest = NEWEST.get(name)
        if newest is None:
            out.append(f"wants {name}_{number}, of which nothing is known")
        elif tuple(int(part) for part in number.split(".")) > newest:
            out.append(f"wants {name}_{number}, at most {name}_{'.'.join(map(str, newest))} is there")
    return out


def readelf(option, path):
    return subprocess.run(["readelf", option, "-W", str(path)], capture_output=True, text=True, check=True).stdout


def mistakes_of_name(wheel, modules):
    """Whether the modules' names say what the wheel's does."""
    _, _, python, abi, _ = Path(wheel).stem.split("-")
    suffix = ".abi3.so" if abi == "abi3" else f".cpython-{python.removeprefix('cp')}-"
    return [
        f"{module} is in a wheel of {python}-{abi}, and its name lacks `{suffix}`" for module in modules if suffix not in module
    ]


def mistakes_of_wheel(wheel):
    with zipfile.ZipFile(wheel) as archive, tempfile.TemporaryDirectory() as folder:
        modules = [name for name in archive.namelist() if ".so" in Path(name).suffixes]
        out = mistakes_of_name(wheel, modules) if modules else ["it has no module"]
        for name in archive.namelist():
            if not archive.read(name).startswith(b"\x7fELF"):
                continue  # modules and commands are left
            path = archive.extract(name, folder)
            found = mistakes_of_module(readelf("-d", path), readelf("-V", path))
            out += [f"{name} {each}" for each in found]
    return out


def label(wheel):
    """The same wheel with the tag of the systems that it was checked for."""
    wheel = Path(wheel)
    name, version, python, abi, platform = wheel.stem.split("-")
    machine = platform.removeprefix("linux_")
    if platform != f"linux_{machine}":
        return wheel
    tag = f"{python}-{abi}-{LABEL}_{machine}"
    made = wheel.with_name(f"{name}-{version}-{tag}.whl")
    record = f"{name}-{version}.dist-info/RECORD"
    with zipfile.ZipFile(wheel) as old, zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as new:
        lines = []
        for info in old.infolist():
            data = old.read(info)
            if info.filename == record:
                continue
            if info.filename == f"{name}-{version}.dist-info/WHEEL":
                data = re.sub(rb"(?m)^Tag: .*$", b"Tag: " + tag.encode(), data)
            digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
            lines.append(f"{info.filename},sha256={digest},{len(data)}\n")
            new.writestr(info, data, zipfile.ZIP_DEFLATED)
        new.writestr(record, "".join([*lines, f"{record},,\n"]))
    wheel.unlink()
    return made


def try_out(python, wheels):
    """Whether this Python installs one of the wheels and can use it."""
    with tempfile.TemporaryDirectory() as folder:
        links = [f"--find-links={each}" for each in {str(Path(wheel).resolve().parent) for wheel in wheels}]
        name = Path(wheels[0]).stem.split("-")[0]
        install = [python, "-m", "pip", "install", "-q", "--target", folder, "--no-deps", "--no-index", *links, name]
        if subprocess.run(install).returncode != 0:
            return False
        # NumPy is the interpreter's own.
        code = f"import sys; sys.path.insert(0, {folder!r})\n{TRY}"
        return subprocess.run([python, "-c", code], cwd=folder).returncode == 0


def main(arguments):
    if len(arguments) < 2 or arguments[0] not in ("check", "label", "try"):
        print(__doc__, file=sys.stderr)
        return 2
    verb, *rest = arguments
    if verb == "try":
        return 0 if try_out(rest[0], rest[1:]) else 1
    code = 0
    for wheel in rest:
        found = mistakes_of_wheel(wheel)
        for each in found:
            print(f"{wheel}: {each}")
        if found:
            code = 1
        else:
            print(f"{label(wheel) if verb == 'label' else wheel}: imports from Ubuntu 22.04 on")
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
