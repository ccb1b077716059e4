#!/usr/bin/env python3
"""Compiles one file with NVRTC to a cubin, and prints how long that took as one JSON object.

    nvrtc.py FILE --kernel 'gemm_kernel<Staged>' --arch sm_90a -I FOLDER...
    {"load_s": 0.01, "compile_s": 0.35, "cpu_s": 0.34, "bytes": 150000}

`load_s` is the opening of libnvrtc, `compile_s` everything from the source text to the cubin in
memory, `cpu_s` the same in CPU time: what a program pays that compiles as it runs. run.py starts this script once for
each measurement, so nothing is warm but the files. Exit 1 with NVRTC's log on stderr when the file
does not compile, 3 when there is no NVRTC.
"""

import argparse
import ctypes
import json
import sys
import time
from pathlib import Path


def open_nvrtc(folders):
    """The library, or None: by its name as the loader finds it, or in a toolkit's folder."""
    found = [str(path) for folder in folders for path in sorted(folder.glob("libnvrtc.so*"))]
    for name in [*found, "libnvrtc.so", "libnvrtc.so.13", "libnvrtc.so.12"]:
        try:
            return ctypes.CDLL(name)
        except OSError:
            continue
    return None


class Program:
    """One nvrtcProgram; `check` stops the script with the log when a call fails."""

    def __init__(self, library, path, kernel):
        self.library = library
        self.handle = ctypes.c_void_p()
        source = path.read_bytes()
        created = library.nvrtcCreateProgram(
            ctypes.byref(self.handle), source, str(path).encode(), 0, None, None
        )
        if created != 0:
            sys.exit(f"nvrtcCreateProgram: {created}")
        if library.nvrtcAddNameExpression(self.handle, kernel.encode()) != 0:
            sys.exit(f"nvrtc does not take the name {kernel}")

    def compile(self, options):
        words = (ctypes.c_char_p * len(options))(*[option.encode() for option in options])
        if self.library.nvrtcCompileProgram(self.handle, len(options), words) != 0:
            log = self.library.nvrtcGetProgramLogSize, self.library.nvrtcGetProgramLog
            print(self.fetch(*log).rstrip(b"\0").decode(errors="replace"), file=sys.stderr)
            sys.exit(1)
        return self.fetch(self.library.nvrtcGetCUBINSize, self.library.nvrtcGetCUBIN)

    def fetch(self, size_of, get):
        size = ctypes.c_size_t()
        if size_of(self.handle, ctypes.byref(size)) != 0:
            sys.exit("nvrtc did not say how large its result is")
        buffer = ctypes.create_string_buffer(size.value)
        if get(self.handle, buffer) != 0:
            sys.exit("nvrtc did not hand out its result")
        return buffer.raw


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("file", type=Path)
    parser.add_argument("--kernel", required=True, help="the kernel, with its template arguments")
    parser.add_argument("--arch", required=True)
    parser.add_argument("--library", type=Path, action="append", default=[])
    parser.add_argument("--option", action="append", default=[], help="one more, for NVRTC")
    parser.add_argument("-I", dest="include", action="append", default=[])
    options = parser.parse_args()
    start = time.perf_counter()
    library = open_nvrtc(options.library)
    if library is None:
        print("no libnvrtc here", file=sys.stderr)
        return 3
    loaded, loaded_cpu = time.perf_counter(), time.process_time()
    words = ["-std=c++20", f"-arch={options.arch}", *options.option]
    program = Program(library, options.file, options.kernel)
    cubin = program.compile(words + [f"-I{folder}" for folder in options.include])
    done, done_cpu = time.perf_counter(), time.process_time()
    if cubin[:4] != b"\x7fELF" or options.kernel.split("<")[0].encode() not in cubin:
        print(f"the cubin holds no kernel `{options.kernel}`", file=sys.stderr)
        return 1
    times = {"load_s": loaded - start, "compile_s": done - loaded, "cpu_s": done_cpu - loaded_cpu}
    print(json.dumps({**times, "bytes": len(cubin)}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
