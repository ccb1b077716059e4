#!/usr/bin/env python3
"""`kiln prune` against a few lines of Python that do the same another way.

    KILN=build/release/bin/kiln tests/e2e/prune_test.py [CASE]...

Every element type and both forms of metadata: the three files must hold exactly the bytes that the
definitions of docs/sparse.md give. What is refused must leave no file behind.
"""

import ast
import os
import random
import struct
import subprocess
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
KILN = str(Path(os.environ.get("KILN", ROOT / "build/release/bin/kiln")).resolve())
HEADER = 10  # before a version 1 header's text
# --type: NumPy's name, bytes, bits of the mantissa (None: an integer), elements of a group, kept of it.
TYPES = {
    "f16": ("<f2", 2, 10, 4, 2),
    "bf16": ("<V2", 2, 7, 4, 2),
    "f32": ("<f4", 4, 23, 2, 1),
    "tf32": ("<f4", 4, 23, 2, 1),
    "f8_e4m3": ("|V1", 1, 3, 4, 2),
    "f8_e5m2": ("|V1", 1, 2, 4, 2),
    "s8": ("|i1", 1, None, 4, 2),
    "u8": ("|u1", 1, None, 4, 2),
}


def npy(descr, shape, data):
    header = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': {tuple(shape)}, }}"
    header += " " * (-(len(header) + HEADER + 1) % 64) + "\n"
    return b"\x93NUMPY\x01\0" + struct.pack("<H", len(header)) + header.encode() + data


def parsed(path):
    """(descr, shape, data) of a file."""
    raw = path.read_bytes()
    length = struct.unpack("<H", raw[8:HEADER])[0]
    header = ast.literal_eval(raw[HEADER : HEADER + length].decode())
    return header["descr"], list(header["shape"]), raw[HEADER + length :]


def magnitude(kind, bits):
    """A key that orders the elements as their absolute values."""
    _, width, mantissa, _, _ = TYPES[kind]
    if mantissa is None:
        return 256 - bits if kind == "s8" and bits > 127 else bits
    bits &= (1 << (8 * width - 1)) - 1
    top = (1 << (8 * width - 1)) - 1 - ((1 << mantissa) - 1)  # infinity, where there is one
    first_nan = top + 1 if kind != "f8_e4m3" else 0x7F
    return float("inf") if bits >= first_nan else bits


def split(kind, rows):
    """The pruned rows, the packed rows and the rows of nibbles."""
    _, _, _, size, count = TYPES[kind]
    dense, packed, nibbles = [], [], []
    for row in rows:
        dense.append([])
        packed.append([])
        nibbles.append([])
        for at in range(0, len(row), size):
            group = row[at : at + size]
            best = sorted(range(size), key=lambda i: (-magnitude(kind, group[i]), i))
            kept = sorted(best[:count])
            dense[-1] += [v if i in kept else 0 for i, v in enumerate(group)]
            packed[-1] += [group[i] for i in kept]
            nibbles[-1].append(kept[0] + 4 * kept[1] if count == 2 else (0x4, 0xE)[kept[0]])
    return dense, packed, nibbles


def words(kind, nibbles):
    """Metadata as 32-bit words: language 14.8, from nibbles instead of bytes."""
    out = [[0] * (len(nibbles[0]) // 8) for _ in nibbles]
    for r, row in enumerate(nibbles):
        for g, nibble in enumerate(row):
            col, within = divmod(g, 8)
            if TYPES[kind][1] == 1:
                out[r][col] |= nibble << (4 * within)
            else:
                block, in_block = divmod(r, 16)
                half, low = divmod(in_block, 8)
                out[16 * block + 2 * low + within // 4][col] |= nibble << (16 * half + 4 * (within % 4))
    return out


def elements(width, rows):
    return b"".join(v.to_bytes(width, "little") for row in rows for v in row)


class Prune(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory(prefix="kiln-prune-")
        self.addCleanup(scratch.cleanup)
        self.folder = Path(scratch.name)

    def prune(self, *arguments):
        done = subprocess.run(
            [KILN, "prune", "w.npy", *arguments],
            cwd=self.folder,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        return done.returncode, done.stdout + done.stderr

    def write(self, kind, rows):
        descr, width, *_ = TYPES[kind]
        data = npy(descr, (len(rows), len(rows[0])), elements(width, rows))
        (self.folder / "w.npy").write_bytes(data)

    def expect_file(self, name, descr, shape, data):
        self.assertEqual(parsed(self.folder / name), (descr, shape, data), name)

    def check(self, kind, rows):
        descr, width, _, _, _ = TYPES[kind]
        m, k = len(rows), len(rows[0])
        self.write(kind, rows)
        dense, packed, nibbles = split(kind, rows)
        paired = [[a | b << 4 for a, b in zip(row[::2], row[1::2])] for row in nibbles]
        forms = {"u8": ("|u1", 1, paired), "u32": ("<u4", 4, words(kind, nibbles))}
        for form, (meta_descr, meta_width, meta) in forms.items():
            with self.subTest(kind, form=form):
                outputs = ("-o", "p.npy", "--metadata", "m.npy", "--dense", "d.npy")
                code, text = self.prune(*outputs, "--type", kind, "--form", form)
                self.assertEqual(code, 0, text)
                self.expect_file("d.npy", descr, [m, k], elements(width, dense))
                self.expect_file("p.npy", descr, [m, k // 2], elements(width, packed))
                self.expect_file("m.npy", meta_descr, [m, len(meta[0])], elements(meta_width, meta))

    def test_every_type_with_random_bits(self):
        """All bit patterns may come: NaN, infinities, zeros of both signs."""
        source = random.Random(1)
        for kind, (_, width, *_) in TYPES.items():
            rows = [[source.randrange(256**width) for _ in range(96)] for _ in range(32)]
            self.check(kind, rows)

    def test_ties_and_zeros(self):
        source = random.Random(2)
        for kind, (_, width, *_) in TYPES.items():
            few = [0, 1, 1 << (8 * width - 1), 1 | 1 << (8 * width - 1), 2]
            self.check(kind, [[source.choice(few) for _ in range(64)] for _ in range(48)])

    def test_the_example_of_the_documents(self):
        row = [3, 1, 256 - 4, 2, 0, 5, 0, 0]
        dense, packed, nibbles = split("s8", [row])
        self.assertEqual(dense, [[3, 0, 252, 0, 0, 5, 0, 0]])
        self.assertEqual(packed, [[3, 252, 0, 5]])
        self.assertEqual(nibbles, [[8, 4]])
        self.check("s8", [row * 4] * 16)

    def test_a_pruned_matrix_is_taken_as_it_is(self):
        source = random.Random(3)
        self.write("f16", split("f16", [[source.randrange(65536) for _ in range(32)] for _ in range(16)])[0])
        code, text = self.prune("-o", "p.npy", "--metadata", "m.npy", "--no-prune")
        self.assertEqual(code, 0, text)
        self.assertIn("0 of 512 elements set to 0", text)

    def test_what_is_refused_leaves_no_file(self):
        self.write("f16", [[1] * 30] * 3)
        refused = {
            (): (2, "`w.npy` has 30 columns, no multiple of 8"),
            ("--form", "u32"): (2, "`w.npy` has 30 columns, no multiple of 32"),
        }
        for extra, (code, message) in refused.items():
            self.assert_refused(code, message, *extra)
        self.write("bf16", [[1] * 32] * 24)
        self.assert_refused(2, "`w.npy` holds `<V2`, which no matrix unit")
        self.assert_refused(2, "`w.npy` has 24 rows, no multiple of 16", "--type", "bf16", "--form", "u32")
        self.assert_refused(1, "row 0, columns 0 to 3", "--type", "bf16", "--no-prune")

    def assert_refused(self, code, message, *extra):
        found, text = self.prune("-o", "p.npy", "--metadata", "m.npy", "--dense", "d.npy", *extra)
        self.assertEqual(found, code, text)
        self.assertIn(message, text)
        self.assertEqual([p.name for p in self.folder.iterdir()], ["w.npy"])


if __name__ == "__main__":
    unittest.main()
