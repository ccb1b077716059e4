#!/usr/bin/env python3
"""Conversions between every pair of element types on a GPU, against the simulator bit for bit.

    KILN=build/release/bin/kiln tests/gpu/conversions.py [--on gpu] [--arch A]

Needs an NVIDIA driver, NVRTC and NumPy. Every pattern of the types of 8 and 16 bits is converted; of the
wider ones the values where something may change and random patterns. The last line is
`N conversions, M differ`; exit code 1 when some do. NaNs are one value.
"""

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
KILN = os.environ.get("KILN", str(ROOT / "build/release/bin/kiln"))

# name: bytes, and for floats the bits of the mantissa and the exponent's largest pattern
FLOATS = {
    "f64": (8, 52, 0x7FF),
    "f32": (4, 23, 0xFF),
    "f16": (2, 10, 0x1F),
    "bf16": (2, 7, 0xFF),
    "f8_e4m3": (1, 3, 0xF),
    "f8_e5m2": (1, 2, 0x1F),
    "f8_ue4m3": (1, 3, 0xF),
    "f8_ue8m0": (1, 0, 0xFF),
}
# Where the largest number is not the pattern of infinity: how far from that it is.
LARGEST = {"f8_e4m3": 6, "f8_ue4m3": 6, "f8_ue8m0": -1}
INTEGERS = {"s64": 8, "u64": 8, "s32": 4, "u32": 4, "s16": 2, "u16": 2, "s8": 1, "u8": 1}
TYPES = {**{name: row[0] for name, row in FLOATS.items()}, **INTEGERS}
# The types of .npy files in which kiln takes and gives elements.
NUMPY = {"f64": "<f8", "f32": "<f4", "f16": "<f2", "bf16": "|V2", "f8_e4m3": "|V1", "f8_e5m2": "|V1",
         "f8_ue4m3": "|V1", "f8_ue8m0": "|V1",
         "s64": "<i8", "u64": "<u8", "s32": "<i4", "u32": "<u4", "s16": "<i2", "u16": "<u2",
         "s8": "|i1", "u8": "|u1"}


def unsigned(size):
    return np.dtype(f"<u{size}")


def edges():
    """Numbers around which some conversion may change."""
    powers = np.ldexp(1.0, np.arange(-160, 130))
    near = np.concatenate([powers * f for f in (1, 1.25, 1.5, 1 + 2.0**-23, 1 - 2.0**-24, 1 + 2.0**-52)])
    limits = [448.0, 464.0, 57344.0, 61440.0, 65504.0, 65520.0, 3.3895313892515355e38, 3.4028234663852886e38]
    limits += [2.0**n + d for n in (7, 8, 15, 16, 31, 32, 53, 63, 64) for d in (-1.5, -1, -0.5, 0, 0.5, 1)]
    exact = np.array(limits)
    single = exact.astype("<f4")
    around = np.concatenate([np.nextafter(exact, np.inf), np.nextafter(exact, 0),
                             np.nextafter(single, np.float32(np.inf)).astype("<f8"),
                             np.nextafter(single, np.float32(0)).astype("<f8")])
    small = np.arange(0, 1100) / 4.0  # integers, halves and quarters
    all_of = np.concatenate([near, near + 1, exact, around, small, [0.0, np.inf, np.nan, 5e-324]])
    return np.concatenate([all_of, -all_of])


def patterns(name):
    size = TYPES[name]
    if size <= 2:
        return np.arange(2 ** (8 * size), dtype=np.uint64).astype(unsigned(size))
    chance = np.random.default_rng(11)
    drawn = chance.integers(0, 2**64, 40000, dtype=np.uint64)
    if name in FLOATS:
        with np.errstate(all="ignore"):
            values = edges().astype(NUMPY[name]).view(unsigned(size))
    else:
        bits = np.uint64(1) << np.arange(0, 64, dtype=np.uint64)
        values = np.concatenate([bits, bits - np.uint64(1), bits + np.uint64(1), ~bits])
        for below in (8, 11, 12, 24, 25, 53, 54):
            low = np.where(bits >> np.uint64(below) > 0, bits >> np.uint64(below), np.uint64(0))
            values = np.concatenate([values, bits + low, bits + low + np.uint64(1), bits + low - np.uint64(1)])
    mask = np.uint64(2 ** (8 * size) - 1)
    wide = np.concatenate([values.astype(np.uint64), drawn]) & mask
    return wide.astype(unsigned(size))


def canonical(name, bits):
    """With one pattern for all NaNs."""
    if name not in FLOATS:
        return bits
    size, mantissa, top = FLOATS[name]
    width = 8 * size - (name != "f8_ue8m0")  # without the sign
    magnitude = bits.astype(np.uint64) & np.uint64(2**width - 1)
    largest = (top << mantissa) + LARGEST.get(name, 0)
    out = bits.copy()
    out[magnitude > np.uint64(largest)] = np.iinfo(bits.dtype).max
    return out


def program(source):
    """One kernel: each element of `source`, converted to each type."""
    others = [name for name in TYPES if name != source]
    params = ", ".join(f"global {name} [N] to_{name}" for name in others)
    writes = "".join(f"      to_{name}.at(b # t) = __to<{name}>(x.at(b # t));\n" for name in others)
    return (f"__co__ void convert(global {source} [N] x, {params}) {{\n"
            "  parallel b by cdiv(N, 256) : block, t by 256 : thread\n"
            f"    if (b # t < N) {{\n{writes}    }}\n}}\n")


def run(folder, source, place, arch):
    """The outputs' patterns by the name of their type."""
    outs = {name: folder / f"{place}_{name}.npy" for name in TYPES if name != source}
    command = [KILN, "run", str(folder / "convert.co"), "--on", place, "--arch", arch,
               "--in", f"x={folder / 'x.npy'}"]
    for name, path in outs.items():
        command += ["--out", f"to_{name}={path}"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    if done.returncode != 0:
        print(f"from {source} on {place}: exit code {done.returncode}\n{done.stdout}{done.stderr}")
    if not all(path.exists() for path in outs.values()):
        sys.exit(1)
    return done.returncode, {
        name: np.load(path).reshape(-1).view(unsigned(TYPES[name])) for name, path in outs.items()}


def convert_from(source, place, arch):
    given = patterns(source)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "convert.co").write_text(program(source), encoding="utf-8")
        np.save(folder / "x.npy", given.view(NUMPY[source]))
        expected_code, expected = run(folder, source, "sim", arch)
        code, found = run(folder, source, place, arch)
    differ = int(code != 0 or expected_code != 0)
    for to, bits in expected.items():
        wrong = np.flatnonzero(canonical(to, bits) != canonical(to, found[to]))
        differ += len(wrong)
        for i in wrong[:5]:
            print(f"{source} {int(given[i]):#x} to {to}: {int(found[to][i]):#x}, simulated {int(bits[i]):#x}")
    return len(given) * len(expected), differ


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--on", default="gpu", choices=("gpu", "sim", "reference"))
    parser.add_argument("--arch", default="sm_90a")
    options = parser.parse_args()
    conversions = differ = 0
    for source in TYPES:
        more, wrong = convert_from(source, options.on, options.arch)
        conversions += more
        differ += wrong
    print(f"{conversions} conversions, {differ} differ")
    sys.exit(1 if differ else 0)


if __name__ == "__main__":
    main()
