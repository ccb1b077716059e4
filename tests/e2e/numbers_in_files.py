"""Small numbers in .npy files, and the numbers of a result."""

import struct

# Of these every sum of products below is exact in f32.
NUMBERS = {
    "f16": {-2: 0xC000, -1: 0xBC00, 0: 0, 1: 0x3C00, 2: 0x4000},
    "f8_e4m3": {-2: 0xC0, -1: 0xB8, 0: 0, 1: 0x38, 2: 0x40},
    "s8": {number: number for number in range(-128, 128)},
    "f32": {number: float(number) for number in range(-2, 3)},
}
NPY_TYPES = {
    "f16": ("<f2", "H"),
    "f8_e4m3": ("|V1", "B"),
    "s8": ("|i1", "b"),
    "f32": ("<f4", "f"),
    "u32": ("<u4", "I"),
    "s32": ("<i4", "i"),
}
HEADER = 10  # before a version 1 header's text


def save(path, dtype, rows, shape=None):
    descr, code = NPY_TYPES[dtype]
    values = [value for row in rows for value in row]
    shape = shape or (len(rows), len(rows[0]))
    header = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}"
    header += " " * (-(len(header) + HEADER + 1) % 64) + "\n"
    data = struct.pack(f"<{len(values)}{code}", *values)
    path.write_bytes(b"\x93NUMPY\x01\0" + struct.pack("<H", len(header)) + header.encode() + data)


def load(path, dtype, cols):
    raw = path.read_bytes()
    data = raw[HEADER + struct.unpack("<H", raw[8:HEADER])[0] :]
    values = [value for (value,) in struct.iter_unpack("<" + NPY_TYPES[dtype][1], data)]
    return [values[at : at + cols] for at in range(0, len(values), cols)]
