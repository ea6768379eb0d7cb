"""``python -m leaderboard card``: what goes into a model card, from verified results."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from biasboard.ground.command_line import one_line_errors
from biasboard.ground.errors import ConfigError
from biasboard.ground.memory import machine_memory
from biasboard.ground.plain_text import listed, printable
from leaderboard.benchmark_pages import check_plug_ins
from leaderboard.commands.comparable_results import known_model, load_comparable, model_folders, model_ids
from leaderboard.commands.shared_options import DATASETS, AcceptedResults, DatasetsFolder, KeysFolder
from leaderboard.pages.markup import model_page
from leaderboard.pages.model_cards import short_lines, write_card
from leaderboard.pages.model_summary import several_answered, summarise, with_missing_of_groups
from leaderboard.verify.board_files import accepted_results, keys_folder, site_folder
from leaderboard.verify.entries import Entry, Root, label_of
from leaderboard.verify.keys import open_book
from schemas.documents.model_summary import ModelSummary
from schemas.outputs.documents import with_format


@one_line_errors()
@with_format(ModelSummary)
def card(
    runs: Annotated[Path, typer.Argument(help="Folder of all runs; may be absent for a model on the board.")] = Path(
        "out/runs"
    ),
    model: Annotated[
        str | None, typer.Option(help="Id of the model; needed if there are runs of several, or none.")
    ] = None,
    against: Annotated[
        str | None, typer.Option(help="Id of a model on the board, or of a run, to compare with.")
    ] = None,
    out: Annotated[Path, typer.Option(help="Folder of all cards.")] = Path("out/cards"),
    datasets: DatasetsFolder = DATASETS,
    results: AcceptedResults = None,
    keys: KeysFolder = None,
) -> ModelSummary:
    """Write what goes into a model card: Markdown, metadata for the Hub, a LaTeX table and badges.

    Every result is verified first, and every number is that of the board. A result that is unsound is named and not
    used. The files lie in a folder of the model, in place of those of an earlier call.
    """
    check_plug_ins()
    with accepted_results(results) as accepted:
        name = _folder_name(runs, accepted, model)
        against = None if against is None else known_model("--against", against, model_ids([runs, accepted]))
        board, own = load_comparable(
            (Root(runs, "local"), Root(accepted, "accepted")),
            open_book(keys or keys_folder(), datasets),
            machine_memory(),
            lambda _, place: place.split("/")[1:2] == [name],
            against,
        )
        if not own:
            raise ConfigError(f"no result of the model in {name} is valid, for the reasons above; score it again")
        # Runs of one's own come first, as their folder does; of several models of one name, such as those of an
        # endpoint whose settings changed, that with most results counts.
        nearest = [entry.result.model for entry in own if entry.origin == own[0].origin]
        results_of = Counter(model.identity_sha256 for model in nearest)
        chosen = max(nearest, key=lambda each: results_of[each.identity_sha256])
        alike = {each.identity_sha256 for each in nearest if label_of(each) == label_of(chosen)}
        if len(alike) > 1:
            raise ConfigError(
                f"{len(alike)} models of other weights, settings or addresses are stored as {chosen.id}, in "
                f"{listed(sorted({entry.place for entry in own}), most=8)}; score each with a --name of its own, or "
                "give a folder with the runs of one"
            )
        summary = summarise(board, chosen, against=against)
        runs_of = [
            (root / entry.place, entry.result)
            for entry in own
            for root in [runs if entry.origin == "local" else accepted]
            if entry.result.withheld is None
        ]
        summary = with_missing_of_groups(summary, runs_of)
    shown = {sha256 for benchmark in summary.benchmarks for sha256 in benchmark.results}
    accepted_answers = {
        _asked(entry): entry.answers_sha256
        for entry in own
        if entry.origin == "accepted" and entry.result.signature_sha256 in shown
    }
    if passed_over := [
        entry.result.signature
        for entry in own
        if entry.origin == "local" and accepted_answers.get(_asked(entry), entry.answers_sha256) != entry.answers_sha256
    ]:
        told = ", ".join(sorted({f"{one.dataset} {one.config}" for one in passed_over}))
        told = f"accepted results of this model are shown in place of the runs in {runs}: {told}"
        summary = replace(summary, notes=(*summary.notes, told))
    if (several := several_answered(entry.result for entry in own)) is not None:
        summary = replace(summary, notes=(*summary.notes, several))
    if unused := sorted({label_of(entry.result.model) for entry in own} - {label_of(chosen)}):
        told = f"only the results of {label_of(chosen)} count here; there are others, of {', '.join(unused)}"
        summary = replace(summary, notes=(*summary.notes, told))
    # Imported here, because the rest of a card needs nothing of the site.
    from leaderboard.pages.publishing import site_settings

    address = site_settings(site_folder()).address
    # The page of the model, if all of its results are on a published board.
    is_published = address is not None and all(entry.origin == "accepted" for entry in own)
    page = f"{address}{model_page(chosen.id)}" if is_published else None
    files = write_card(summary, out, page=page)
    for line in short_lines(summary):
        print(printable(line, most=1_000))
    if not summary.is_whole:
        print("only some items were asked: such benchmarks have no rank, and no metadata for the Hub")
    first, *others = (printable(str(path)) for path in files)
    print(f"wrote {first}; beside it: {', '.join(Path(other).name for other in others)}")
    return summary


def _asked(entry: Entry) -> tuple[str, ...]:
    """Return of what the model was asked how, whether all or some of its items."""
    signature = entry.result.signature
    return signature.dataset, signature.dataset_version, signature.config, signature.prompt


def _folder_name(runs: Path, accepted: Path, model: str | None) -> str:
    if model is not None:
        is_known = any(model.replace("/", "__") in model_folders(folder) for folder in (runs, accepted))
        known = model if is_known else known_model("--model", model, model_ids([runs, accepted]))
        return known.replace("/", "__")
    found = model_ids([runs])
    if not found:
        why = "holds no results of a model" if runs.exists() else "no such folder"
        remedy = "make some with biasboard score MODEL, or name a model on the board with --model"
        raise ConfigError(f"{runs}: {why}; {remedy}")
    if len(found) > 1:
        raise ConfigError(f"{runs}: holds results of several models; name one with --model: {listed(found, most=20)}")
    return found[0].replace("/", "__")
