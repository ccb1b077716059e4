"""Finds functions in C++ text by matching braces: an estimate, but one that reads our style well.

    int clamp(int x, int low) {      =>  Function(name="clamp", line=1, lines=6, parameters=2,
      while (x < low) {                           branches=True, nesting=2)
        if (x < 0) {
          x = 0;
        ...

Comments, literals and preprocessor lines are blanked first. A brace opens a function when the text
before it, since the last statement, has a parameter list and stands in a namespace or a class. Not
seen: functions made by macros, lambdas (they count towards the function around them), and control
statements without braces (they count as branches, not as nesting).
"""

import re
from dataclasses import dataclass

_BLANKED = re.compile(
    r'//[^\n]*|/\*.*?\*/|R"(?P<d>[^(\s]*)\(.*?\)(?P=d)"|"(?:[^"\\\n]|\\.)*"'
    r"|(?<![0-9a-fA-F])'(?:[^'\\\n]|\\.)+'|^[ \t]*#(?:[^\n]*\\\n)*[^\n]*",
    re.S | re.M,
)
_CONTROL = re.compile(r"\b(if|else|for|while|switch|do)\b")
_SCOPE = re.compile(r"\b(namespace|struct|class|union|enum)\b|extern\s*$")
_BRANCH = re.compile(r"\b(if|for|while|do)\b")
_ATTRIBUTE = re.compile(r"\[\[.*?\]\]", re.S)
_NAME = re.compile(r"(~?[\w:~]+|operator\s*\S+?)\s*$")


@dataclass
class Function:
    name: str
    line: int
    lines: int
    parameters: int
    branches: bool
    nesting: int


def blank(text):
    """`text` with comments, literals and directives as spaces; offsets and lines stay."""
    return _BLANKED.sub(lambda m: re.sub(r"[^\n]", " ", m[0]), text)


def _strip_angles(header):
    """Without template argument lists, innermost first."""
    previous = None
    while previous != header:
        previous = header
        header = re.sub(r"<[^<>()]*(?:\([^<>()]*\))?[^<>()]*>", "", header)
    return header


def _parameter_list(header):
    """(name, parameters) of the first `name(...)`, or None."""
    header = _strip_angles(_ATTRIBUTE.sub("", header).replace("->", "  "))
    for match in re.finditer(r"\(", header):
        before = header[: match.start()]
        name = _NAME.search(before)
        if not name or name[1] in ("alignas", "decltype", "noexcept", "requires", "explicit"):
            continue
        depth, commas, index = 0, 0, match.start()
        for index in range(match.start(), len(header)):
            depth += header[index] in "([{"
            depth -= header[index] in ")]}"
            commas += depth == 1 and header[index] == ","
            if depth == 0:
                break
        inside = header[match.start() + 1 : index].strip()
        return name[1], (commas + 1 if inside and inside != "void" else 0)
    return None


def _kind(header, in_function):
    """What the brace after `header` opens: scope, function, control or other."""
    header = _ATTRIBUTE.sub("", header).strip()
    if in_function:
        return "control" if _CONTROL.search(header) else "other"
    if re.search(r"=\s*$|\breturn\s*$|,\s*$", header):
        return "other"
    if "(" in header and _parameter_list(header) and not re.search(r"[:,]\s*\w+$", header):
        return "function"
    return "scope" if _SCOPE.search(header) else "other"


def functions(text):
    """Every function with a body, in order of its closing brace."""
    code = blank(text)
    found, stack = [], []  # of (kind, offset of the header, header)
    begin = 0
    for match in re.finditer(r"[{};]", code):
        at, mark = match.start(), match[0]
        if mark == "{":
            header = code[begin:at]
            in_function = any(kind == "function" for kind, _, _ in stack)
            stack.append((_kind(header, in_function), begin, header))
            begin = at + 1
        elif mark == "}" and stack:
            kind, start, header = stack.pop()
            if kind == "function":
                found.append(_describe(code, start, header, at))
            # An initialiser's brace is part of the statement it stands in.
            begin = start if kind == "other" else at + 1
        elif code.count("(", begin, at) <= code.count(")", begin, at):
            begin = at + 1
    return found


def _describe(code, start, header, end):
    body_at = start + len(header)
    body = code[body_at : end + 1]
    name, parameters = _parameter_list(header) or ("?", 0)
    if name in ("TEST", "TEST_F", "TEST_P"):
        name, parameters = re.sub(r"\s+", " ", header.strip()), 0
    first = start + len(header) - len(header.lstrip())
    line = code.count("\n", 0, first) + 1
    return Function(
        name=name,
        line=line,
        lines=code.count("\n", 0, end) + 2 - line,
        parameters=parameters,
        branches=bool(_BRANCH.search(body)),
        nesting=_nesting(body[1:-1]),
    )


def _nesting(body):
    """How deep control blocks stand inside each other; an `else if` chain is one level."""
    deepest, stack, begin = 0, [], 0  # of (is control, where its statement began)
    for match in re.finditer(r"[{};]", body):
        at, mark = match.start(), match[0]
        balanced = body.count("(", begin, at) <= body.count(")", begin, at)
        if mark == "{":
            control = balanced and bool(_CONTROL.search(body, begin, at))
            stack.append((control, None if balanced else begin))
            deepest = max(deepest, sum(is_control for is_control, _ in stack))
            begin = at + 1
        elif mark == "}" and stack:
            begin = stack.pop()[1] or at + 1
        elif balanced:
            begin = at + 1
    return deepest
