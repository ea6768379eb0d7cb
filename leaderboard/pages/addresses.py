"""Names the pages and anchors of tables and results, which stay the same from build to build."""

from __future__ import annotations

import re

from leaderboard.pages.markup import slug
from leaderboard.ranking.rows import Row, Table
from schemas.documents.result import Model, Result, Signature


def plain(part: str) -> str:
    """Return a text as a part of an anchor or file name."""
    return re.sub(r"[^a-z0-9.-]+", "-", part.lower())


def table_anchor(signature: Signature, signature_sha256: str) -> str:
    """Return the anchor of the table with the results of a signature."""
    return "-".join(
        plain(part) for part in (signature.dataset, signature.config, signature.prompt, signature_sha256[:8])
    )


def anchor_of(table: Table) -> str:
    """Return the anchor of a table."""
    if table.is_index:
        return plain(f"{table.signature.dataset}-index-{table.protocol}-{table.sha256[:8]}")
    return table_anchor(table.signature, table.sha256)


def table_page(table: Table, *, is_default: bool) -> str:
    """Return the path of the page that shows a table, relative to the root of the site.

    Args:
        table: The table.
        is_default: True if it is the first table of its benchmark.
    """
    name = slug(table.signature.benchmark)
    return f"benchmarks/{name}.html" if is_default else f"benchmarks/{name}/{anchor_of(table)}.html"


def row_anchor(table: str, model: Model) -> str:
    """Return the name of a model's row in addresses, also its anchor on the page of the model, from the table's."""
    return f"{table}-{model.identity_sha256[:8]}"


def result_anchor(result: Result) -> str:
    """Return the name of the row of a result."""
    return row_anchor(table_anchor(result.signature, result.signature_sha256), result.model)


BASELINES = "useless-predictors.html"
"""Path of the page of all baselines, relative to the root of the site."""


def model_page(model_id: str) -> str:
    """Return the path of the page of a model, relative to the root of the site; baselines share one page."""
    # Results are valid only if exactly the baselines have such ids.
    return f"{BASELINES}#{slug(model_id)}" if model_id.startswith("baseline/") else f"models/{slug(model_id)}.html"


def result_page(model_id: str, anchor: str) -> str:
    """Return the path of the page of a result or an index, relative to the root of the site.

    Args:
        model_id: Id of the model.
        anchor: Name of the result among those of the model.
    """
    page = model_page(model_id)
    return page if page.startswith(BASELINES) else f"{page.removesuffix('.html')}/{anchor}.html"


def row_page(table: Table, row: Row) -> str:
    """Return the path of the page of the result or the index in a row of a table."""
    return result_page(row.model.id, row_anchor(anchor_of(table), row.model))


def dataset_page(name: str, version: str) -> str:
    """Return the path of the page of a dataset, relative to the root of the site."""
    return f"datasets/{slug(f'{name}-{version}')}.html"


def permalink(result: Result) -> str:
    """Return the address of a result, relative to the root of the site."""
    return result_page(result.model.id, result_anchor(result))
