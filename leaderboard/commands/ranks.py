"""``biasboard ranks``: models are ranked by anybody's scores on items."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Annotated, Literal, cast

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from biasboard.ground.charts import shortened
from biasboard.ground.command_line import one_line_errors
from biasboard.ground.plain_text import escaped
from leaderboard.ranking.frames import Scalar, to_csv
from leaderboard.ranking.score_ranks import RankedModel, ScoreRanks, rank_scores
from leaderboard.ranking.scores import Columns
from schemas.files.user_tables import read_frame

_MOST_ROWS = 100


@one_line_errors()
def ranks(
    *,
    path: Annotated[Path, typer.Argument(metavar="FILE", help="CSV or Parquet file of scores, long or wide.")],
    model: Annotated[str | None, typer.Option(help="Column of the models; by default recognised by its name.")] = None,
    item: Annotated[
        list[str] | None,
        typer.Option(
            help="Column of the items. Repeatable: columns that name an item together, such as task and seed."
        ),
    ] = None,
    score: Annotated[str | None, typer.Option(help="Column of the scores of a long table.")] = None,
    cluster: Annotated[
        str | None, typer.Option(help="Column with the cluster of each item, such as its source.")
    ] = None,
    lower_is_better: Annotated[bool, typer.Option("--lower-is-better", help="The smallest mean is the best.")] = False,
    limits: Annotated[
        tuple[float, float] | None,
        typer.Option("--range", metavar="MIN MAX", help="Possible scores. Missing ones then widen ranks."),
    ] = None,
    common: Annotated[
        bool, typer.Option("--common", help="Compare on those items only for which every model has a score.")
    ] = False,
    output: Annotated[
        Literal["text", "csv"], typer.Option("--format", help="Lines for people, or CSV with a row for each model.")
    ] = "text",
) -> None:
    """Rank models by a table of scores: which are tied, which are not, and by how much they would have to differ.

    A long table has a row for each score, with columns such as model, item and score; a wide one has a row or a column
    for each model. The value of a model is its mean over the items. Models share ranks that the items cannot
    distinguish, by the same comparisons as on the board.
    """
    columns = Columns(model=model, item=item or (), score=score, cluster=cluster)
    ranked = rank_scores(read_frame(path), columns, lower_is_better=lower_is_better, limits=limits, common=common)
    if output == "csv":
        # No text of a cell can act on a terminal; to_csv keeps it from a spreadsheet.
        cells = [
            {name: escaped(value) if isinstance(value, str) else cast(Scalar, value) for name, value in row.items()}
            for row in ranked.rows()
        ]
        print(to_csv(cells), end="")
    else:
        _print(ranked, lower_is_better)


def _print(ranked: ScoreRanks, lower_is_better: bool) -> None:
    of_items = f"{ranked.n_items:,} items" + (f" in {ranked.n_clusters:,} clusters" if ranked.n_clusters else "")
    print(
        f"{len(ranked.models):,} models, {of_items}; the {'lowest' if lower_is_better else 'highest'} mean is the best"
    )
    table = Table()
    for name in ("rank", "model", "mean", "95 % interval", "tier", "first"):
        table.add_column(name, justify="left" if name == "model" else "right", no_wrap=True)
    # Three decimals of accuracies, and one of percentages.
    decimals = max(0, 3 - math.floor(math.log10(ranked.width)))
    for row in ranked.models[:_MOST_ROWS]:
        # As Text, since markup in the name of a model would be obeyed.
        shown = Text(escaped(shortened(row.model)))
        table.add_row("-" if row.rank is None else str(row.rank), shown, *_cells(row, decimals))
    Console().print(table)
    if len(ranked.models) > _MOST_ROWS:
        print(f"{len(ranked.models) - _MOST_ROWS:,} more models: --format csv prints all of them")
    for sentence in (*ranked.sentences, *ranked.notes):
        print(sentence)


def _cells(row: RankedModel, decimals: int) -> tuple[str, str, str, str]:
    if row.score is None:
        return "", row.reason or "", "", ""
    interval = "" if row.low is None or row.high is None else f"{row.low:.{decimals}f} to {row.high:.{decimals}f}"
    chance = row.chance or 0.0
    return f"{row.score:.{decimals}f}", interval, str(row.tier), "<1 %" if chance < 0.005 else f"{chance * 100:.0f} %"
