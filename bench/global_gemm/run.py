#!/usr/bin/env python3
"""Builds, and runs where there is a GPU, the comparison of examples/global_gemm.cu with cuBLASLt.

    run.py [--arch sm_90] [--out build/bench/global_gemm] [--build-only] [--cutlass FOLDER]

With the tutorial texts in ../shared/seeds (or $KILN_SEEDS) and CuTe's headers (--cutlass, the
`include` folder) the tutorial's program joins in. Needs nvcc and libcublasLt.
"""

import argparse
import os
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path.insert(0, str(ROOT / "tests" / "seeds"))
import programs  # noqa: E402

LAUNCH = """
void launch_seed(const void* a, const void* b, float* c, int m, int n, int k) {
  gemm_kernel<<<dim3(m / BLK_M, n / BLK_N), NUM_THREADS>>>(
      static_cast<half const*>(a), static_cast<half const*>(b), c, m, n, k);
}
"""


def run(argv):
    print("+", " ".join(str(word) for word in argv), flush=True)
    subprocess.run([str(word) for word in argv], check=True)


def seed_source(out):
    """The tutorial's GEMM with its main renamed and a launcher added, or None."""
    folder = programs.seeds_folder(os.environ, ROOT)
    if folder is None:
        return None
    text = programs.extract(folder)["global_gemm"].source
    path = out / "seed.cu"
    path.write_text(text.replace("int main()", "int seed_main()") + LAUNCH)
    return path


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--arch", default="sm_90")
    parser.add_argument("--out", type=Path, default=ROOT / "build" / "bench" / "global_gemm")
    parser.add_argument("--cutlass", type=Path, help="CuTe's include folder")
    parser.add_argument("--build-only", action="store_true")
    parser.add_argument("shapes", nargs="*", default=["512", "512", "256", "4096", "4096", "4096"])
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    nvcc = ["nvcc", "-std=c++20", f"-arch={options.arch}", "-O3"]
    objects = []
    define = []
    seed = seed_source(options.out) if options.cutlass else None
    if seed:
        objects.append(options.out / "seed.o")
        define = ["-DKILN_SEED"]
        run([*nvcc, "-w", f"-I{options.cutlass}", "-c", "-o", objects[0], seed])
    else:
        print("without the tutorial's program: no texts or no CuTe headers (--cutlass)")
    program = options.out / "compare"
    run([*nvcc, *define, f"-I{ROOT / 'include'}", "-o", program, HERE / "compare.cu", *objects,
         "-lcublasLt"])  # fmt: skip
    if not options.build_only:
        run([program, *options.shapes])
    return 0


if __name__ == "__main__":
    sys.exit(main())
