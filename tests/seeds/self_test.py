#!/usr/bin/env python3
"""What programs.py and run.py make of texts and printouts, without nvcc or the tutorials.

tests/seeds/self_test.py
"""

import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import programs  # noqa: E402
import run  # noqa: E402

PROGRAM = """#include <cute/tensor.hpp>
#include <cute/atom/mma_atom.hpp>
#include <cstdio>

using namespace cute;

__global__ void gemm_kernel(int* c)
{
    // one × one
    *c = 1;
}

int main()
{
    if (true) { gemm_kernel<<<1, 1>>>(nullptr); }
    return 0;
}
"""


def extracted(**texts):
    with tempfile.TemporaryDirectory(prefix="kiln-seeds-") as folder:
        for name, text in texts.items():
            (Path(folder) / f"{name}.txt").write_text(text, encoding="utf-8")
        return programs.extract(Path(folder))


class Extraction(unittest.TestCase):
    def test_the_program_ends_with_the_brace_of_main(self):
        found = extracted(a=f"Prose.\n```cpp\n{PROGRAM}```\nMore prose {{}}.\n")
        self.assertEqual(found["global_gemm"].source, PROGRAM)
        self.assertNotIn("hello_mma", found)

    def test_a_text_on_one_line_holds_no_program(self):
        self.assertEqual(extracted(a=PROGRAM.replace("\n", " ")), {})

    def test_a_program_cut_short_is_none(self):
        self.assertEqual(extracted(a=PROGRAM[: PROGRAM.index("return 0")]), {})

    def test_the_indented_form_is_preferred(self):
        flat = "\n".join(line.lstrip() for line in PROGRAM.split("\n"))
        found = extracted(a=flat, b=PROGRAM, c=flat)
        self.assertEqual(found["global_gemm"].path.name, "b.txt")

    def test_the_undamaged_form_is_preferred(self):
        damaged = PROGRAM.replace("×", "\u0393\u2014")
        found = extracted(a=damaged, b=PROGRAM, c=damaged)
        self.assertEqual(found["global_gemm"].path.name, "b.txt")

    def test_nothing_but_includes_and_the_namespace_changes(self):
        ported = programs.ported(PROGRAM).split("\n")
        wanted = PROGRAM.split("\n")
        wanted[0:2] = ["#include <kiln/device/cute.cuh>"]
        wanted[wanted.index("using namespace cute;")] = "using namespace kiln::cute;"
        self.assertEqual(ported, wanted)

    def test_a_program_without_the_namespace_is_refused(self):
        with self.assertRaises(ValueError):
            programs.ported(PROGRAM.replace("using namespace cute;", ""))

    def test_an_empty_folder_counts_as_absent(self):
        with tempfile.TemporaryDirectory(prefix="kiln-seeds-") as folder:
            self.assertIsNone(programs.seeds_folder({"KILN_SEEDS": folder}, Path(folder)))


def hello_printed(owner=run.owner_of_c, product="16.0"):
    lines = ["       n=0   n=1"]
    for m in range(16):
        lines.append(f"m={m:<4} " + "".join(f"T{owner(m, n):02}   " for n in range(8)))
    for m in range(16):
        lines.append(f"m={m:<4} " + "".join(f"{product:8}" for _ in range(8)))
    return "\n".join(lines) + "\n"


GEMM_PRINTED = (
    "C[0:4][0:4] (expected 256 everywhere):\n"
    + "     256.0   256.0   256.0   256.0\n" * 4
    + "\nMax absolute error: 0.000000e+00\nResult: PASS\n"
)


class Printouts(unittest.TestCase):
    def test_the_hardware_s_map_passes(self):
        self.assertEqual(run.problem_in_hello_mma(hello_printed()), "")

    def test_the_map_the_tutorial_expected_fails(self):
        def transposed(m, n):
            return m % 4 + 4 * (n // 2) + 16 * (m // 4 % 2)

        self.assertIn("row 0 belongs to", run.problem_in_hello_mma(hello_printed(transposed)))

    def test_a_wrong_product_fails(self):
        for product in ("15.0", "nan", "-16.0"):
            self.assertIn("of the product", run.problem_in_hello_mma(hello_printed(product=product)))

    def test_a_missing_row_fails(self):
        lines = hello_printed().split("\n")
        for missing in (1, -2):
            kept = [line for line in lines if line != lines[missing]]
            self.assertIn("where there are 16", run.problem_in_hello_mma("\n".join(kept)))

    def test_the_gemm_passes_and_each_of_its_figures_can_fail(self):
        self.assertEqual(run.problem_in_global_gemm(GEMM_PRINTED), "")
        for right, wrong in (
            ("PASS", "FAIL"),
            ("0.000000e+00", "1.000000e-04"),
            ("0.000000e+00", "nan"),
            ("256.0\n\nMax", "255.0\n\nMax"),
        ):
            self.assertNotEqual(run.problem_in_global_gemm(GEMM_PRINTED.replace(right, wrong)), "")


if __name__ == "__main__":
    unittest.main()
