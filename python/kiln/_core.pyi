"""The functions of kiln/kiln.h. Private: the package `kiln` is what others use."""

OK: int
INVALID: int
REJECTED: int
SYSTEM: int

_Diagnostic = tuple[str, str, str, str, str, int, int, str]
_Parameter = tuple[str, str, bool, tuple[str, ...], bool, bool, bool]
_Kernel = tuple[str, list[_Parameter], _Parameter | None, list[str]]
_Array = tuple[str, int, str, list[int]]

class Report:
    def diagnostics(self) -> list[_Diagnostic]: ...
    def text(self) -> str: ...
    def findings(self) -> tuple[bool, int, int, int, int, int]: ...
    def result(self) -> tuple[int, str, list[int]] | None: ...

class Program:
    def diagnostics(self) -> list[_Diagnostic]: ...
    def arch(self) -> str: ...
    def cuda(self) -> str: ...
    def kernels(self) -> list[_Kernel]: ...
    def run(
        self,
        by_reference: bool,
        kernel: str,
        arguments: tuple[list[_Array], list[tuple[str, int | float]]],
        how: tuple[int, int, int],
        /,
    ) -> tuple[int, str, Report | None]: ...

def compile(
    file: str | None,
    source: str | None,
    arch: str | None,
    defines: list[str],
    folders: list[str],
) -> tuple[int, str, Program | None]: ...
def describe(array: object, /) -> tuple[int, str, list[int], bool]: ...
