"""Names tables and results in the addresses of the pages that choose among them."""

from __future__ import annotations

import hashlib
from pathlib import PurePosixPath

from leaderboard.pages.model_views import Placement


def table_id(placement: Placement) -> str:
    """Return the name of the table of a result, which is the same for all results on the same items."""
    stem = PurePosixPath(placement.section.files.json).stem
    # Results of one table are about the same items; should they not be, they are kept apart here.
    return f"{stem}-{placement.row.entry.items_sha256[:6]}"


def address(page: str, placement: Placement) -> str:
    """Return the address of a page with one result chosen.

    Args:
        page: Path of the page relative to the root of the site.
        placement: The result.
    """
    return f"{page}#table={table_id(placement)}&model={result_id(placement)}"


def result_id(placement: Placement) -> str:
    """Return the name of a result."""
    return hashlib.sha256(placement.files.json.encode()).hexdigest()[:12]
