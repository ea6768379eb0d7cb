"""The command ``python -m evaluators reweight evaluate``: measures class accuracies and how even they are."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from evaluators.commands.reweight.drawing import check_plots, draw_measured
from evaluators.commands.reweight.options import (
    AsJson,
    Classes,
    Config,
    Ignore,
    Input,
    Kind,
    LabelColumn,
    Plots,
    Prefix,
    Split,
    choice_of,
    read_rules,
)
from evaluators.commands.reweight.printing import json_of, measured, print_measured, print_notes
from evaluators.commands.reweight.reading import read_rows
from evaluators.commands.reweight.rows import Wanted
from schemas import strict_json
from schemas.command_line import one_line_errors
from schemas.progress import working


@one_line_errors()
def evaluate_command(
    path: Input,
    rules: Annotated[
        Path | None,
        typer.Option(help="File of rules that 'fit' wrote: measure before and after. Classes are matched by name."),
    ] = None,
    kind: Kind = None,
    label_column: LabelColumn = "label",
    prefix: Prefix = None,
    classes: Classes = None,
    ignore: Ignore = None,
    config: Config = None,
    split: Split = None,
    plots: Plots = None,
    as_json: AsJson = False,
) -> None:
    """Print the accuracy of each class and how even they are, with intervals; with --rules also after a correction."""
    choice = choice_of(path, kind, label_column, prefix, classes, ignore, config, split)
    stored = None if rules is None else read_rules(rules)
    check_plots(plots)
    with working(f"reading {path}"):
        rows = read_rows(choice, Wanted(None if stored is None else stored.document.classes))
        if stored is not None:
            rows.check_uncorrected()
        found = measured(rows.title, rows, rows.targets(), stored)
    drawn = [] if plots is None else draw_measured(plots, found)
    if as_json:
        print(strict_json.dumps({**json_of(found), "plots": [str(one) for one in drawn]}), end="")
        return
    print_notes(rows)
    print_measured(found)
    for one in drawn:
        print(f"chart {one}")
