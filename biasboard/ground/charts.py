"""Draws charts as SVG with Vega-Lite, without a browser, in the fonts and colours that all charts share."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from biasboard.ground.errors import ConfigError, import_extra
from biasboard.ground.strict_json import JsonValue

FONT_SIZE = 12
LABEL_PADDING = 10
"""Distance of labels from the axis, so that they keep away from dots at the lower end of the range."""
TEXT, MUTED, GRID = "#21252b", "#59616d", "#dfe3e8"
FIRST, SECOND, THIRD = "#1f5fbf", "#7a4b00", "#2a7d46"
"""Colours of three kinds of marks."""
_FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, sans-serif"
_SCHEMA = "https://vega.github.io/schema/vega-lite/v5.json"


def with_style(spec: Mapping[str, JsonValue], *, background: str | None = None) -> dict[str, JsonValue]:
    """Return a Vega-Lite specification with the fonts and colours of all charts.

    Args:
        spec: The specification.
        background: Colour behind the chart; None for none, where a page has its own.
    """
    config: JsonValue = {
        "background": background,
        "font": _FONT,
        "view": {"stroke": None},
        "axis": {
            "labelColor": MUTED,
            "titleColor": TEXT,
            "titleFontWeight": 600,
            "labelFontSize": FONT_SIZE,
            "titleFontSize": FONT_SIZE,
            "gridColor": GRID,
            "domainColor": GRID,
            "tickColor": GRID,
        },
        "legend": {"labelColor": TEXT, "labelFontSize": FONT_SIZE},
    }
    return {"$schema": _SCHEMA, **spec, "config": config}


def check_installed() -> None:
    """Check that charts can be drawn.

    Raises:
        MissingExtraError: the extra ``site`` is not installed.
    """
    import_extra("vl_convert", "site")


def svg_of(whole: Mapping[str, JsonValue]) -> str:
    """Return the SVG of a Vega-Lite specification, to which nothing is added.

    Raises:
        MissingExtraError: the extra ``site`` is not installed.
        ConfigError: the specification cannot be drawn.
    """
    converter = import_extra("vl_convert", "site")
    try:
        svg: str = converter.vegalite_to_svg(dict(whole))
    except ValueError as error:
        reason = str(error).strip().splitlines()[0]
        raise ConfigError(f"a chart could not be drawn: {reason}; reinstall the extra 'site'") from error
    return svg


def room_for(labels: Iterable[str]) -> float:
    """Return the width in pixels to reserve for labels, enough for any sans-serif font that a reader may have."""
    return max(len(label) for label in labels) * FONT_SIZE * 0.62
