#!/usr/bin/env python3
"""The kernels of the library that know groups, on numbers that come out exact, and with one mistake each.

    KILN=build/dev/bin/kiln KILN_RELEASE=build/release/bin/kiln tests/e2e/grouped_kernels_test.py

As in kernels_test.py. More cases with KILN_SWEEP=all.
"""

import itertools
import unittest

import kernels_test as kernels
from kernels_test import ALL, ALL_PARTS, RING, up
from numbers_in_files import NUMBERS, save

GROUP_ROWS = 128  # rows of a with one group


def groups_of_rows(told, m, groups, defines):
    """The group of each of m rows, None where it is passed over: tiles of 64 or 128 rows are computed whole."""
    if "BY_ROWS" not in defines:
        of_tile = [group if 0 <= group < groups else None for group in told]
        return [of_tile[row // GROUP_ROWS] for row in range(m)]
    out, begin, tile = [None] * m, 0, 64 * defines.get("WARPGROUPS", 2)
    for group, rows in enumerate(told):
        room = m // groups if "APART" in defines else m - begin
        rows = max(0, min(rows, room))
        end = min(m, begin + up(rows, tile))
        out[begin:end] = [group] * (end - begin)
        begin += room if "APART" in defines else up(rows, GROUP_ROWS)
    return out


class OnGroups(kernels.Broken):
    """Products of groups, in a kernel that may be broken."""

    def grouped(self, dtype, sizes, told, defines, kernel="gemm_grouped_sm90"):
        """Rows of a with the matrices of their groups: what is added up and then what stays as it is; once
        more with an epilogue, which reads c. `told` are numbers of groups, or with BY_ROWS of their rows."""
        m, n, k, groups = sizes
        a = self.matrix("a", dtype, m, k)
        b = self.matrix("b", dtype, groups * n, k, (groups, n, k))
        bias, residual = self.matrix("bias", "f32", groups, n), self.matrix("residual", "f32", m, n)
        before = self.matrix("before", "f32", m, n)
        table = "rows_of_group" if "BY_ROWS" in defines else "group_of_tile"
        save(self.folder / f"{table}.npy", "s32", [told], (len(told),))
        blocks, panels = up(k, 128) // 128, up(n, 128) // 128
        scale = lambda rows, cols: [self.chance.choices((0.5, 1.0, 2.0, -4.0), k=cols) for _ in range(rows)]
        a_scale, b_scale = scale(blocks, m), scale(groups * panels, blocks)
        save(self.folder / "a_scale.npy", "f32", a_scale)
        save(self.folder / "b_scale.npy", "f32", b_scale, (groups, panels, blocks))

        def product(row, group, col):
            x, y = a[row], b[group * n + col]
            if "SCALED" not in defines:
                return sum(map(int.__mul__, x, y))
            parts = [slice(128 * block, 128 * block + 128) for block in range(blocks)]
            scales = [a_scale[i][row] * b_scale[group * panels + col // 128][i] for i in range(blocks)]
            return sum(factor * sum(map(int.__mul__, x[part], y[part])) for factor, part in zip(scales, parts))

        group_of = groups_of_rows(told, m, groups, defines)
        found = [group is not None for group in group_of]
        sums, all_parts = {}, [[float(x) for x in row] for row in before]
        for row in filter(found.__getitem__, range(m)):
            group = group_of[row]
            sums[row] = [product(row, group, col) for col in range(n)]
            linear = (2 * x - c + y for x, c, y in zip(sums[row], before[row], bias[group]))
            all_parts[row] = [float(max(x, 0) + y) for x, y in zip(linear, residual[row])]
        shape = dict(M=m, N=n, K=k, G=groups)
        defines = dict(DTYPE=dtype, OUT="f32", BLOCKS=3, **defines)
        names = ("a", "b", table)
        if "SCALED" in defines:
            shape |= dict(KB=blocks, NB=panels)
            names += ("a_scale", "b_scale")
        unwritten = n * found.count(False)
        c = self.result(kernel, shape, defines, names, n, unwritten)
        self.assertTrue(all(c[row] == wanted for row, wanted in sums.items()), "other numbers")
        (self.folder / "before.npy").replace(self.folder / "c.npy")
        names += ("bias", "residual", "c")
        defines |= {part: 1 for part in ALL_PARTS}
        shape |= dict(alpha=2, beta=-1, LDC=n, LDR=n)
        c = self.result(kernel, shape, defines, names, n, unwritten)
        self.assertTrue(c == all_parts, "other numbers behind the epilogue")

    def k_grouped(self, dtype, sizes, rows, defines, kernel="gemm_k_grouped_sm90"):
        """The products of each group's part of K, what fills up its last 128 being 0 in a; and 2 x - c of them."""
        m, n, k, groups = sizes
        a, b = self.matrix("a", dtype, m, k), self.matrix("b", dtype, n, k)
        begins = list(itertools.accumulate((up(max(each, 0), 128) for each in rows), initial=0))
        parts = [range(begin, min(k, begin + max(each, 0))) for begin, each in zip(begins, rows)]
        inside = set(itertools.chain(*parts))
        a = [[x if l in inside else 0 for l, x in enumerate(row)] for row in a]
        along = {name: defines.get(f"{name.upper()}_ALONG_K", 1) for name in ("a", "b")}
        for name, numbers in (("a", a), ("b", b)):
            bits = [[NUMBERS[dtype][v] for v in row] for row in (numbers if along[name] else zip(*numbers))]
            save(self.folder / f"{name}.npy", dtype, bits)
        save(self.folder / "rows_of_group.npy", "s32", [rows], (groups,))
        blocks = up(k, 128) // 128
        scale = lambda cols: [self.chance.choices((0.5, 1.0, 2.0, -4.0), k=cols) for _ in range(blocks)]
        a_scale, b_scale = scale(m), scale(n)
        save(self.folder / "a_scale.npy", "f32", a_scale)
        save(self.folder / "b_scale.npy", "f32", b_scale)

        def product(i, j, part):
            if "SCALED" not in defines:
                return float(sum(a[i][l] * b[j][l] for l in part))
            return sum(a[i][l] * b[j][l] * a_scale[l // 128][i] * b_scale[l // 128][j] for l in part)

        sums = [[product(i, j, part) for j in range(n)] for part in parts for i in range(m)]
        before = [self.chance.choices((-3.0, -1.0, 0.5, 2.0), k=n) for _ in sums]
        shape = dict(M=m, N=n, K=k, G=groups)
        names = ("a", "b", "rows_of_group")
        if "SCALED" in defines:
            shape |= dict(KB=blocks)
            names += ("a_scale", "b_scale")
        defines = dict(DTYPE=dtype, BLOCKS=3, **defines)
        self.assertTrue(self.result(kernel, shape, defines, names, n) == sums, "other numbers")
        save(self.folder / "c.npy", "f32", before, (groups, m, n))
        wanted = [[2 * x - y for x, y in zip(*rows)] for rows in zip(sums, before)]
        shape |= dict(alpha=2, beta=-1, LDC=n)
        found = self.result(kernel, shape, defines | dict(ALPHA=1, BETA=1), (*names, "c"), n)
        self.assertTrue(found == wanted, "other numbers behind the epilogue")


class Exact(OnGroups):
    def test_grouped(self):
        # Group 2 twice and group 3 never; tiles that are passed over before, between and behind the others;
        # a number beyond the last group's.
        self.grouped("f16", (522, 72, 136, 4), [2, -1, 0, 2, 1], dict(TILE_N=64, STAGES=2, GROUP=4))
        self.grouped("f8_e4m3", (300, 88, 400, 2), [-1, 1, 2], dict(WARPGROUPS=1, TILE_N=64, STAGES=3))
        self.grouped("f16", (129, 12, 8, 1), [0, -7], dict(TILE_N=256, STAGES=2))
        self.grouped("f16", (130, 8, 8, 3), [-1, -1], dict(TILE_N=64, STAGES=2))
        if ALL:
            of_tile = [0, 0, -1, -1, 4, 4, 2, -1, 3]
            self.grouped("f16", (1100, 200, 328, 5), of_tile, dict(TILE_N=128, STAGES=3, GROUP=4))
            self.grouped("f8_e4m3", (1024, 136, 272, 5), of_tile[1:], dict(WARPGROUPS=1, TILE_N=128, STAGES=2))
            self.grouped("f16", (1100, 72, 72, 2), [1] * 9, dict(TILE_N=64, STAGES=2, GROUP=4))

    def test_grouped_by_rows(self):
        """Groups without rows before, between and behind the others; with less than none; more than there is
        room for, all in all and in one group; none with any."""
        following = dict(BY_ROWS=1, TILE_N=64, STAGES=2)
        self.grouped("f16", (522, 72, 136, 6), [0, 130, 0, 5, 1, -3], following)
        self.grouped("f16", (300, 72, 72, 4), [0, 40, 500, 128], dict(following, WARPGROUPS=1, GROUP=4))
        self.grouped("f16", (130, 8, 8, 2), [0, 0], following)
        apart = dict(following, APART=1)
        self.grouped("f16", (768, 72, 136, 3), [130, 0, 257], dict(apart, GROUP=4))
        self.grouped("f16", (512, 72, 72, 4), [-1, 0, 64, 1], dict(apart, WARPGROUPS=1))
        if ALL:
            rows = [0, 0, 300, 1, 0, 128, 129, 0]
            self.grouped("f16", (1160, 136, 200, 8), rows, dict(following, TILE_N=128, PARTS=2, GROUP=4))

    def test_k_grouped(self):
        tile = dict(TILE_N=64, STAGES=2)
        self.k_grouped("f16", (150, 72, 400, 4), [0, 130, 3, 0], tile)
        self.k_grouped("f16", (72, 136, 304, 3), [128, 0, 500], dict(tile, WARPGROUPS=1, A_ALONG_K=0, B_ALONG_K=0))
        self.k_grouped("f8_e4m3", (132, 72, 400, 3), [200, -1, 144], dict(tile, SCALED=1, STAGES=3))
        if ALL:
            self.k_grouped("f8_e4m3", (72, 200, 656, 3), [0, 300, 256], dict(SCALED=1, WARPGROUPS=1, TILE_N=128, STAGES=2))
            self.k_grouped("f16", (264, 136, 256, 2), [5, 128], dict(TILE_N=128, STAGES=3, GROUP=2))

    def test_grouped_with_scales(self):
        scaled = dict(SCALED=1, TILE_N=128, STAGES=2)
        self.grouped("f8_e4m3", (520, 136, 272, 4), [2, -1, 0, 3, 2], dict(scaled, GROUP=4))
        self.grouped("f8_e4m3", (300, 144, 144, 4), [0, 65, 0, 70], dict(scaled, WARPGROUPS=1, BY_ROWS=1))
        self.grouped("f8_e4m3", (512, 136, 128, 4), [3, 0, 128, 77], dict(scaled, STAGES=3, BY_ROWS=1, APART=1))

    def test_grouped_in_bands(self):
        """Groups of one band and of three; one that ends in the middle of a tile, and one with the last rows."""
        bands = dict(SCALED=1, TILE_N=128, STAGES=2, BANDS=2, GROUP=4)
        self.grouped("f8_e4m3", (900, 136, 272, 4), [2, 2, 2, 0, -1, 3, 3, 2], bands)
        self.grouped("f8_e4m3", (900, 136, 144, 4), [130, 0, 257, 100], dict(bands, BY_ROWS=1))
        self.grouped("f8_e4m3", (768, 136, 128, 2), [300, 128], dict(bands, BY_ROWS=1, APART=1))


# ---- mistakes ----

# With groups: by tile, by rows, and by rows of groups apart that have scale factors.
GROUP_RING = (
    ("wait placed[round % PLACES];", "", "uninitialised-read"),
    ("wait taken;", "", "phase-overrun"),
    ("trigger taken[round % PLACES];", "", "race"),
    ("stage = (round * steps + k) % STAGES;", "stage = k % STAGES;", "deadlock"),
)
GROUPED_MISTAKES = (
    *GROUP_RING,
    (".at(group, i, k)", ".at(0, i, k)", "other numbers"),
    ("bias.at(group, col)", "bias.at(0, col)", "other numbers behind"),
    ("group < 0 || group >= groups", "group >= groups", "unwritten"),
    ("group < 0 || group >= groups", "group < 0", "unwritten"),
    ("group < 0 || group >= groups", "group <= 0 || group >= groups", "unwritten"),
    ("if (rows > 0 && mine != group) break;", "", "other numbers"),
    ("if (rows == 0) row = next * EACH;", "row = next * EACH;", "race"),
    ("before += cdiv(rows, BANDS) * tiles_n;", "before += rows;", "unwritten"),
    ("(tile - before) / height", "(tile - before) / 2", "race"),
)
BY_ROWS_MISTAKES = (
    ("passed += rows;", "", "race"),
    ("passed = 0;\n", "\n", "unwritten"),
    ("cdiv(count, GROUP_UNIT) * GROUP_UNIT", "count", "race"),
    ("begin / BAND + passed", "begin / BAND", "race"),
    ("cdiv(count, BAND) - passed", "count / BAND - passed", "unwritten"),
    ("__max(0, __min(rows_of_group.at(next), most))", "__min(rows_of_group.at(next), most)", "unwritten"),
)
APART_MISTAKES = (
    ("begin += APART ? m / G", "begin += APART ? 128", "other numbers"),
    ("most = APART ? m / G", "most = APART ? m", "unwritten"),
    ("b_scale.at(group, tile_n, __min", "b_scale.at(0, tile_n, __min", "other numbers"),
    ("b_scale.at(group, tile_n, __min", "b_scale.at(group, 0, __min", "other numbers"),
    ("BAND).at(k, row + band)", "BAND).at(k, 0)", "other numbers"),
)
# Tiles of two bands, of which the second may be another group's.
BANDS_MISTAKES = (
    ("row_now = row + in_run", "row_now = row", "race"),
    ("__min(rows - in_run, BANDS);", "BANDS;", "race"),
    ("full[stage], row + band, k);", "full[stage], row, k);", "other numbers"),
    ("BAND).at(k, row + band)", "BAND).at(k, row)", "other numbers"),
    ("b_s[stage], band * WARPGROUPS + p - 1", "b_s[stage], p - 1", "grid-short"),
)

K_GROUPED_MISTAKES = (
    *RING,
    ("at += 1;", "", "deadlock"),
    ("cdiv(__max(0, __min(rows_of_group.at(g), all - begin)), GROUP_UNIT) * GROUP_UNIT", "128", "other numbers"),
    ("rows_of_group, group, K) / TILE_K", "rows_of_group, group, K) / 64", "other numbers"),
    ("(p - 1) * ROWS + i) * b_scale_s", "i) * b_scale_s", "other numbers"),
    ("b_scale_s[stage].at(0, j)", "b_scale_s[stage].at(0, 0)", "other numbers"),
    (".at(tile / each,", ".at(0,", "race"),
    ("c.at(group, m, n)", "c.at(0, m, n)", "race"),
    ("trigger left[w];", "", "deadlock"),
)


class NegativeControl(OnGroups):
    """Each mistake is found."""

    def test_grouped(self):
        defines = dict(WARPGROUPS=1, TILE_N=64, STAGES=3, GROUP=4)
        check = lambda path: self.grouped("f16", (646, 136, 72, 3), [2, -1, 3, 0, 0, 1], defines, path)
        self.compare("gemm_grouped_sm90", check, GROUPED_MISTAKES)

    def test_grouped_by_rows(self):
        defines = dict(WARPGROUPS=1, TILE_N=64, STAGES=3, GROUP=4, BY_ROWS=1)
        check = lambda path: self.grouped("f16", (900, 136, 72, 4), [-70, 300, 0, 65], defines, path)
        self.compare("gemm_grouped_sm90", check, BY_ROWS_MISTAKES)

    def test_grouped_apart(self):
        defines = dict(SCALED=1, TILE_N=128, STAGES=2, BY_ROWS=1, APART=1)
        check = lambda path: self.grouped("f8_e4m3", (768, 136, 272, 3), [300, 0, 5], defines, path)
        self.compare("gemm_grouped_sm90", check, APART_MISTAKES)

    def test_grouped_in_bands(self):
        defines = dict(SCALED=1, TILE_N=128, STAGES=2, BANDS=2)
        check = lambda path: self.grouped("f8_e4m3", (520, 136, 144, 3), [2, 2, 2, 0, 1], defines, path)
        self.compare("gemm_grouped_sm90", check, BANDS_MISTAKES)

    def test_k_grouped(self):
        defines = dict(SCALED=1, TILE_N=64, STAGES=2)
        check = lambda path: self.k_grouped("f8_e4m3", (132, 72, 528, 3), [130, 3, 144], defines, path)
        self.compare("gemm_k_grouped_sm90", check, K_GROUPED_MISTAKES)


if __name__ == "__main__":
    unittest.main(verbosity=1)
