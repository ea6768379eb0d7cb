"""Writes drawings as SVG: shapes and texts in the colours of both schemes, with the space that they take.

A drawing has no frame: its parts lie wherever they are put, also at negative coordinates, and the picture is as large
as what it holds. The widths of letters are guessed, since nobody knows the fonts of readers: the same parts give the
same bytes on every machine.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import groupby
from typing import Literal, NamedTuple
from xml.sax.saxutils import escape, quoteattr

from biasboard.ground.plain_text import visible

FONT_SIZE = 12
LEAST_SHOWN = 0.75
"""Smallest share of its size at which a chart is shown: its letters then have 9 pixels."""
TEXT, MUTED, GRID = "#21252b", "#59616d", "#dfe3e8"
FIRST, SECOND, THIRD = "#1f5fbf", "#7a4b00", "#2a7d46"
"""Colours of three kinds of marks."""
# Dark colours by light colours. Every colour of a chart is a key, so that one drawing can serve both schemes.
SERIES = {
    "#2457a6": "#86b4ff",
    "#b3541e": "#f0a070",
    "#3c7d3f": "#86d089",
    "#7a4fa3": "#c9a4ef",
    "#a8324a": "#f28ba0",
    "#30343b": "#d9dee6",
    "#0f7c84": "#6fd0d8",
    "#8a6d1d": "#dcc06a",
}
"""Dark colours of series by light ones."""
# One hue, whose steps colour-blind readers and grey prints keep apart: more is farther from the page in both schemes.
STEPS = {
    "#eef3f9": "#18202c",
    "#d9e5f2": "#1d2c42",
    "#c0d5ea": "#22395a",
    "#a0c0e0": "#2a4a78",
    "#79a6d3": "#3a659f",
    "#3b6ea8": "#6d9bd4",
    "#2a62a0": "#98bdea",
    "#123f73": "#cfe1f8",
}
"""Dark colours of the steps of a scale by light ones, from least to most."""
N_INKED = 5
"""Number of the first steps, on which numbers are written in ``INK``; on the others in ``PAPER``."""
INK, PAPER = "#14181f", "#ffffff"
"""Colours of numbers on the steps of a scale."""
DARK = (
    SERIES
    | STEPS
    | {
        INK: "#f2f5fa",
        PAPER: "#0b0f15",
        TEXT: "#e7eaf0",
        MUTED: "#a9b1bf",
        GRID: "#3a4150",
        FIRST: "#7fb2ff",
        SECOND: "#f0b45c",
        THIRD: "#79d398",
    }
)
DASHED, DOTTED = "4 3", "1.5 2.5"
"""Dashes of lines: at what is ideal or even, and at what is less certain."""
_FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, sans-serif"
_WIDTH_OF_LETTER = 0.62
"""Width of a letter as a share of the font size, enough for any sans-serif font of a reader."""
_PADDING = 5
# Corners and circles of each shape around its middle, where 1 is half its size.
_CORNERS = {
    "square": ((-0.89, -0.89), (0.89, -0.89), (0.89, 0.89), (-0.89, 0.89)),
    "diamond": ((0, -1.25), (1.1, 0), (0, 1.25), (-1.1, 0)),
    "triangle-up": ((0, -1), (1.15, 1), (-1.15, 1)),
    "triangle-down": ((0, 1), (1.15, -1), (-1.15, -1)),
    "triangle-right": ((-1, -1.15), (1, 0), (-1, 1.15)),
    "triangle-left": ((1, -1.15), (-1, 0), (1, 1.15)),
    "cross": (
        *((-1.1, -0.37), (-0.37, -0.37), (-0.37, -1.1), (0.37, -1.1), (0.37, -0.37), (1.1, -0.37)),
        *((1.1, 0.37), (0.37, 0.37), (0.37, 1.1), (-0.37, 1.1), (-0.37, 0.37), (-1.1, 0.37)),
    ),
}
SHAPES = {
    "circle": "●",
    "diamond": "◆",
    "triangle-up": "▲",
    "square": "■",
    "triangle-down": "▼",
    "triangle-right": "▶",
    "cross": "✚",
    "triangle-left": "◀",
}
"""Signs by which texts name shapes."""


class Chart(NamedTuple):
    """A chart, with a description in words; sizes are in pixels."""

    svg: str
    """Text of the SVG file. It is dark where its address ends in ``#only-dark``, and light everywhere else."""
    width: int
    height: int
    alt: str
    """Description of the chart for readers who cannot see it."""
    note: str = ""
    """Sentences for its caption that depend on the values, such as which rows are left out."""


class Drawing:
    """Shapes and texts, of which later ones lie over earlier ones; coordinates are pixels, to the right and down."""

    def __init__(self) -> None:
        self._parts: list[tuple[str, str, str]] = []
        self._box = [0.0, 0.0, 0.0, 0.0]

    def line(
        self,
        points: Sequence[tuple[float, float]],
        colour: str,
        *,
        width: float = 1.0,
        opacity: float = 1.0,
        dash: str = "",
    ) -> None:
        """Draw a line through points."""
        style = f' fill="none" stroke="{colour}"' + _unless("stroke-width", width, 1.0)
        style += _unless("opacity", opacity, 1.0) + (f' stroke-dasharray="{dash}"' if dash else "")
        across, down = zip(*points, strict=True)
        self._add(style, "path", f' d="M{_path(points)}"', across, down)

    def box(
        self, left: float, top: float, width: float, height: float, *, fill: str = "", frame: str = "", dash: str = ""
    ) -> None:
        """Draw a rectangle that is filled or framed."""
        style = f' fill="{fill or "none"}"' + (f' stroke="{frame}"' if frame else "")
        style += f' stroke-dasharray="{dash}" stroke-width=".8"' if dash else ""
        place = f' x="{_short(left)}" y="{_short(top)}" width="{_short(width)}" height="{_short(height)}"'
        self._add(style, "rect", place, (left, left + width), (top, top + height))

    def shape(
        self, x: float, y: float, colour: str, *, name: str = "circle", size: float, hollow: bool = False
    ) -> None:
        """Draw a shape around a point; ``size`` is its radius."""
        style = (
            f' fill="none" stroke="{colour}" stroke-width="{1.6 if size > 3 else 1}"' if hollow else f' fill="{colour}"'
        )
        if name == "circle":
            place, tag = f' cx="{_short(x)}" cy="{_short(y)}" r="{_short(size)}"', "circle"
        else:
            corners = [(x + size * across, y + size * down) for across, down in _CORNERS[name]]
            place, tag = f' d="M{_path(corners)}Z"', "path"
        self._add(style, tag, place, (x - size, x + size), (y - size, y + size))

    def text(
        self,
        x: float,
        y: float,
        words: str,
        *,
        anchor: Literal["start", "middle", "end"] = "start",
        colour: str = TEXT,
        bold: bool = False,
        upwards: bool = False,
    ) -> None:
        """Write a line of text, whose vertical middle is at ``y``; ``upwards`` turns it to the left."""
        if not (words := visible(words)):
            return
        length, half = width_of(words), FONT_SIZE / 2 + 1
        start = -length * {"start": 0.0, "middle": 0.5, "end": 1.0}[anchor]
        style = f' fill="{colour}"' + (f' text-anchor="{anchor}"' if anchor != "start" else "")
        style += ' font-weight="600"' if bold else ""
        # Letters stand on a line that lies about a third of their size below their middle.
        base = 0.35 * FONT_SIZE
        if upwards:
            place = f' transform="translate({_short(x + base)},{_short(y)})rotate(-90)"'
            self._add(style, "text", place, (x - half, x + half), (y - start - length, y - start), words)
        else:
            place = f' x="{_short(x)}" y="{_short(y + base)}"'
            self._add(style, "text", place, (x + start, x + start + length), (y - half, y + half), words)

    def chart(self, alt: str, note: str = "") -> Chart:
        """Return the drawing as a chart.

        Args:
            alt: Description of the chart in words.
            note: Sentences for its caption.
        """
        left, top = (round(edge) - _PADDING for edge in self._box[:2])
        width, height = (round(edge) + _PADDING - start for edge, start in zip(self._box[2:], (left, top), strict=True))
        parts = "".join(_group(style, [*of]) for style, of in groupby(self._parts, key=lambda part: part[0]))
        rules = "".join(
            f':target [{paint}="{light}"]{{{paint}:{dark}}}'
            for light, dark in DARK.items()
            for paint in ("fill", "stroke")
            if f'{paint}="{light}"' in parts
        )
        # A picture in a page sees neither the page's rules nor its switch of the scheme, but it does see its own
        # address: the rules hold where that names the id of the drawing.
        svg = (
            f'<svg xmlns="http://www.w3.org/2000/svg" id="only-dark" width="{width}" height="{height}" '
            f'viewBox="{left} {top} {width} {height}" font-family={quoteattr(_FONT)} font-size="{FONT_SIZE}">'
            f"<style>{rules}</style>{parts}</svg>"
        )
        return Chart(svg, width, height, alt, note)

    def _add(
        self, style: str, tag: str, place: str, across: Sequence[float], down: Sequence[float], words: str = ""
    ) -> None:
        self._parts.append((style, f"<{tag}", f"{place}>{escape(words)}</{tag}>" if words else f"{place}/>"))
        ends = self._box
        self._box = [min(ends[0], *across), min(ends[1], *down), max(ends[2], *across), max(ends[3], *down)]


def width_of(text: str) -> float:
    """Return the width in pixels to reserve for a text."""
    return len(text) * FONT_SIZE * _WIDTH_OF_LETTER


def _group(style: str, parts: Sequence[tuple[str, str, str]]) -> str:
    """Return elements that look alike, which say it once."""
    if len(parts) == 1:
        return f"{parts[0][1]}{style}{parts[0][2]}"
    return f"<g{style}>{''.join(f'{tag}{rest}' for _, tag, rest in parts)}</g>"


def _path(points: Sequence[tuple[float, float]]) -> str:
    return "L".join(f"{_short(x)},{_short(y)}" for x, y in points)


def _unless(name: str, value: float, usual: float) -> str:
    return "" if value == usual else f' {name}="{_short(value)}"'


def _short(value: float) -> str:
    """Return a coordinate to a hundredth of a pixel.

    >>> _short(0.5), _short(-12.0), _short(1234.567), _short(-0.001)
    ('.5', '-12', '1234.57', '0')
    """
    text = f"{value:.2f}".rstrip("0").rstrip(".")
    return {"-0": "0", "": "0"}.get(text, re.sub(r"^(-?)0\.", r"\1.", text))
