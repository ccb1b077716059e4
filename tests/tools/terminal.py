"""A terminal as a picture: what a command printed, in SVG.

    terminal.svg(["$ kiln run early.co", "error[race]: race on `a_s[0, 0, 0]`"], "a race is found")

Diagnostics have the colours that kiln gives them on a terminal: the severity red, `-->`, line numbers and second
places blue, the place itself red, notes and helps green.
"""

import html
import re

_CHAR = 7.3  # width of a character of the font, in pixels
_LINE = 17
_MARGIN = 14
_GROUND, _INK, _RED, _BLUE, _GREEN, _GREY = "#1e1e22", "#e4e4e4", "#ff6b68", "#6ca8ff", "#7ccf7c", "#9a9a9a"
_CODE = re.compile(r"^( *\d+ \|)(.*)$")
_MARK = re.compile(r"^( *\|)( *)(\^+ .*|-+ .*|\^+|-+)$")


def _span(text, colour):
    return f'<tspan fill="{colour}">{html.escape(text)}</tspan>' if text else ""


def _line(text):
    """One line as tspans."""
    if text.startswith("$ "):
        return _span("$ ", _GREEN) + _span(text[2:], _INK)
    if text.startswith(("error[", "warning[")):
        head, colon, rest = text.partition(": ")
        return _span(head, _RED) + _span(colon + rest, _INK)
    mark = _MARK.match(text)
    if mark:
        return _span(mark[1] + mark[2], _BLUE) + _span(mark[3], _RED if mark[3][0] == "^" else _BLUE)
    code = _CODE.match(text)
    if code:
        return _span(code[1], _BLUE) + _span(code[2], _INK)
    if re.match(r"^ *(-->|\|$)", text):
        return _span(text, _BLUE)
    if re.match(r"^ *= ", text):
        return _span(text, _GREEN)
    return _span(text, _GREY if text.startswith("  ") else _INK)


def svg(lines, title):
    """The text of an SVG file that shows these lines."""
    width = round(max(len(line) for line in lines) * _CHAR + 2 * _MARGIN)
    height = len(lines) * _LINE + 2 * _MARGIN
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        'font-family="ui-monospace, SFMono-Regular, Menlo, Consolas, monospace" font-size="12">',
        f"<title>{html.escape(title)}</title>",
        f'<rect width="{width}" height="{height}" rx="8" fill="{_GROUND}"/>',
    ]
    for number, line in enumerate(lines):
        y = _MARGIN + number * _LINE + 12
        length = f' textLength="{len(line) * _CHAR:.1f}"' if line.strip() else ""
        out.append(f'<text x="{_MARGIN}" y="{y}"{length} xml:space="preserve">{_line(line)}</text>')
    return "\n".join([*out, "</svg>"]) + "\n"
