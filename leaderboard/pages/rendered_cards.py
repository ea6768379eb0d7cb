"""Reads the sections of a dataset card and renders them as HTML that cannot act: a card may come from anybody."""

from __future__ import annotations

import re

from markdown_it import MarkdownIt
from markupsafe import Markup

from biasboard.ground.plain_text import visible

_HEADING = re.compile(r"^## +(.+?) *$", re.MULTILINE)
_MOST = 20_000
_TABLE = re.compile(r"(?:^[^\n|]+\n+)?(?:^\|.*\n)+", re.MULTILINE)
"""A table and the line above it that introduces it."""
_RULES = ["paragraph", "list", "newline", "escape", "backticks", "emphasis"]
"""Marks that are rendered; addresses and pictures would lead or fetch elsewhere."""


def card_sections(card: str) -> dict[str, str]:
    r"""Return the Markdown of each section of a card, by its heading.

    >>> card_sections("## Uses\n\nMany.")
    {'Uses': 'Many.'}
    """
    _, *parts = _HEADING.split(card)
    return {heading: text.strip() for heading, text in zip(parts[::2], parts[1::2], strict=True)}


def safe_html(markdown: str) -> Markup:
    """Return paragraphs, lists, emphasis and code of a Markdown text as one unbroken block of HTML.

    Everything else, such as HTML, links, pictures and tables, becomes the text that it is written as; tables of cards
    are left out, since pages show the same numbers from the manifest.

    Args:
        markdown: Text from outside.
    """
    text = _TABLE.sub("\n", f"{visible(markdown[:_MOST])}\n")
    html = MarkdownIt("zero").enable(_RULES).render(text)
    # A site generator reads the result as Markdown again: it must see one block and no marks of its own.
    return Markup(re.sub(r"\n\s*", " ", html).strip())
