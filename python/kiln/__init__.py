"""Kiln: a compiler for tile kernels, and a simulator that finds their mistakes without a GPU.

    import kiln, numpy as np

    prog = kiln.compile("scale.co", arch="sm_90a", STAGES=3)
    x = np.ones((64, 1024), np.float32)
    y = np.empty_like(x)
    report = prog.scale.simulate(x, y, factor=2.0, schedules=10)
    assert report.ok, report

    a, b = torch.ones(64, 1024, device="cuda"), torch.empty(64, 1024, device="cuda")
    prog.scale(a, b, factor=2.0)
    c = kiln.ops.gemm(a, b.T, tf32=True)              # the library of products
"""

from kiln import ops
from kiln._launch import DeviceError, Launch
from kiln._measure import Comparison
from kiln._program import CompileError, Kernel, Parameter, Program, compile
from kiln._report import Diagnostic, Explanation, Report
from kiln._tune import Tuning

__all__ = [
    "Comparison",
    "CompileError",
    "DeviceError",
    "Diagnostic",
    "Explanation",
    "Kernel",
    "Launch",
    "Parameter",
    "Program",
    "Report",
    "Tuning",
    "compile",
    "ops",
]
