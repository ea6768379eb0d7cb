"""The command ``annotate report``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

import typer

from biasboard.ground import strict_json
from biasboard.ground.command_line import one_line_errors
from builders.dataset.summary import aligned
from builders.synthbias.annotation.agreement import Report, as_json, make_report
from builders.synthbias.annotation.commands.options import (
    CountModels,
    CountUntested,
    DatasetFolder,
    Relabel,
    StateFolder,
    Stop,
)
from builders.synthbias.annotation.deciding import Policy, decide
from builders.synthbias.annotation.fitting import fitting_state
from builders.synthbias.annotation.sentences import read_annotated
from builders.synthbias.annotation.thresholds import StopRule


@one_line_errors()
def report(
    dataset: DatasetFolder,
    state_folder: StateFolder,
    stop_rule: Stop = StopRule.PAPER,
    relabel: Relabel = False,
    count_models: CountModels = False,
    count_untested: CountUntested = False,
    json_wanted: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Show agreement, votes per item, yield, and how each annotator agrees."""
    annotated = read_annotated(dataset)
    state = fitting_state(annotated, state_folder)
    policy = Policy(stop_rule=stop_rule, relabel=relabel, count_models=count_models, count_untested=count_untested)
    found = make_report(annotated, state, policy, decide(annotated, state, policy))
    if json_wanted:
        typer.echo(strict_json.dumps(as_json(found)), nl=False)
        return
    for line in _lines(found):
        typer.echo(line)


def _lines(found: Report) -> Iterator[str]:
    rows = [
        (
            one.question.value,
            str(one.n_votes),
            str(one.n_items),
            _share(one.yes_rate),
            _share(one.percent_agreement),
            "-" if one.krippendorff_alpha is None else f"{one.krippendorff_alpha:.3f}",
        )
        for one in found.agreement
    ]
    yield from aligned(("question", "votes", "items", "yes", "agreement", "alpha"), rows)
    yield from (f"no alpha for {one.question}: {one.alpha_reason}" for one in found.agreement if one.alpha_reason)
    yield ""
    votes = [(str(n), str(n_items)) for n, n_items in found.votes_per_item.items()]
    yield from aligned(("votes", "items"), votes)
    yield ""
    yields = [
        (
            one.type,
            *(str(n) for n in (one.n_items, one.n_accepted, one.n_rejected, one.n_undecided)),
            *(str(n) for n in (one.n_pairs, one.n_pairs_accepted, one.n_pairs_rejected)),
            "-" if one.votes_per_item is None else f"{one.votes_per_item:.2f}",
        )
        for one in found.yields
    ]
    heading = ("type", "items", "accepted", "rejected", "undecided", "pairs", "accepted", "rejected", "votes/item")
    yield from aligned(heading, yields)
    yield from (f"  {rule}: {n} items" for rule, n in sorted(found.rejects.items()))
    yield ""
    annotators = [
        (
            one.annotator_id,
            one.kind,
            one.status,
            one.entrance or "-",
            "yes" if one.counts else "no",
            str(one.n_items),
            _share(one.agreement_rate),
        )
        for one in found.annotators
    ]
    yield from aligned(("annotator", "kind", "status", "entrance", "counts", "items", "with majority"), annotators)


def _share(share: float | None) -> str:
    return "-" if share is None else f"{100 * share:.1f} %"
