"""Loads the results of a model with those that they can be compared with, for commands that summarise a model."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from difflib import get_close_matches
from functools import partial
from pathlib import Path

from biasboard.ground.errors import ConfigError, DataError
from biasboard.ground.memory import Memory
from biasboard.ground.options import names_in
from biasboard.ground.plain_text import listed, printable
from biasboard.ground.progress import note, steps
from leaderboard.benchmark_pages import pages_of_benchmarks
from leaderboard.ranking.boards import Board, assemble
from leaderboard.verify.baselines import with_baselines
from leaderboard.verify.entries import Entry, Root
from leaderboard.verify.keys import KeyBook, dataset_name
from leaderboard.verify.verdicts import load
from schemas.folders.run_folder import read_result

_MOST_NAMED, _MOST_NEAR = 20, 3
_EACH_ONCE = "recomputing results, each once on this machine"


def model_folders(folder: Path) -> set[str]:
    """Return the names of the folders of models with results on any dataset."""
    return {path.name for path in folder.glob("*@*/*")}


def model_ids(folders: Sequence[Path]) -> list[str]:
    """Return the ids of the language models with results in some folders, as the names of folders say them."""
    names = {name for folder in folders for name in model_folders(folder)}
    return sorted(name.replace("__", "/") for name in names if not name.startswith("baseline__"))


def known_model(flag: str, name: str, have: Sequence[str]) -> str:
    """Return the id of the model that a user names in any case, in full or by how the part after the slash begins.

    Args:
        flag: The option that names it, for the error message.
        name: The name.
        have: The ids of all models with results.

    Raises:
        ConfigError: there are no results of such a model, or of several.
    """
    wanted = name.casefold()
    if name in have:
        return name
    alike = [each for each in have if wanted in (each.casefold(), each.casefold().rpartition("/")[2])]
    alike = alike or [each for each in have if each.casefold().rpartition("/")[2].startswith(wanted)]
    if len(alike) == 1:
        return alike[0]
    if alike:
        raise ConfigError(f"{flag} {name}: names several models; give one id: {listed(alike, most=_MOST_NAMED)}")
    short = {each.casefold().rpartition("/")[2]: each for each in have}
    near = get_close_matches(wanted.rpartition("/")[2], short, n=_MOST_NEAR)
    if near:
        raise ConfigError(
            f"{flag} {name}: there are no results of it; did you mean {' or '.join(short[each] for each in near)}?"
        )
    named = listed(have, most=_MOST_NAMED) or "none"
    raise ConfigError(f"{flag} {name}: there are no results of it; have: {named}")


def load_comparable(
    roots: Sequence[Root], keys: KeyBook, memory: Memory, is_own: Callable[[Root, str], bool], against: str | None
) -> tuple[Board, tuple[Entry, ...]]:
    """Verify the results of a model and those that can be compared with them, and rank them.

    The second value has the results of the model alone, in the order of the folders that they come from.

    Accepted results are compared with those of a whole dataset only, so that others are not verified. Other runs of the
    user's do not count, so that a rank is one among accepted results. Results of the model itself that are not its own
    here, such as accepted ones, do not count either: its values are those of the given folders. Results that are left
    out are named.

    Args:
        roots: Folders of results.
        keys: The answer keys of the datasets.
        memory: Memory of the results that this machine has verified before.
        is_own: Function that is True for the model's results, given the root and the folder relative to it.
        against: Id of the model to compare with, whose runs count too; None for none.
    """
    own = _loaded(roots, keys, memory, "recomputing results of the model", is_own)
    signatures = {entry.result.signature_sha256 for entry in own}
    models = {(entry.result.model.identity_sha256, entry.result.model.id) for entry in own}
    whole = {dataset_name(entry.result.signature) for entry in own if entry.match.extent == "whole"}
    near = {dataset_name(entry.result.signature) for entry in own}
    of_against = None if against is None else against.replace("/", "__")

    def is_other(root: Root, place: str) -> bool:
        dataset, model, *_ = place.split("/")
        if is_own(root, place):
            return False
        return dataset in near and model == of_against if root.origin == "local" else dataset in whole

    def is_comparable(entry: Entry) -> bool:
        if (entry.result.model.identity_sha256, entry.result.model.id) in models:
            return False
        # A few items are compared with the same ones alone: beside all of them, they would be in no column, and make of
        # one model's name two.
        of_whole = entry.match.extent == "whole" and dataset_name(entry.result.signature) in whole
        return of_whole or entry.result.signature_sha256 in signatures

    others = _loaded(roots, keys, memory, _EACH_ONCE, is_other)
    compared = [entry for entry in others if is_comparable(entry)]
    with steps("comparing with the board"):
        return assemble(with_baselines([*own, *compared], memory)), own


def paper_board(roots: Sequence[Root], keys: KeyBook, memory: Memory, benchmarks: Sequence[str]) -> Board:
    """Verify the results of some benchmarks and rank them; those that are left out are named."""
    found = _loaded(roots, keys, memory, _EACH_ONCE, of_benchmarks(benchmarks))
    with steps("comparing with the board"):
        return assemble(found)


def known_benchmarks(text: str) -> tuple[str, ...]:
    """Return the benchmarks that ``--benchmarks`` names.

    Raises:
        ConfigError: it names none, or one that there is not.
    """
    named, have = tuple(filter(None, names_in(text))), [pages.name for pages in pages_of_benchmarks()]
    if unknown := [name for name in named or (text,) if name not in have]:
        raise ConfigError(f"--benchmarks {unknown[0]}: no such benchmark; have: {', '.join(have)}")
    return named


def of_benchmarks(benchmarks: Sequence[str]) -> Callable[[Root, str], bool]:
    """Return the function that is True for folders of results of some benchmarks."""

    def keep(root: Root, place: str) -> bool:
        try:
            return read_result(root.folder / place).signature.benchmark in benchmarks
        except DataError:
            # Loading it says what is wrong with it.
            return True

    return keep


def _loaded(
    roots: Sequence[Root], keys: KeyBook, memory: Memory, what: str, keep: Callable[[Root, str], bool]
) -> tuple[Entry, ...]:
    """Return the valid results of some folders, and name those that are left out."""
    with steps(what) as step:
        found = load(roots, keys, memory, progress=partial(step, what), keep=keep)
    for result in found.left_out:
        note(printable(f"left out: {result.reason}", most=2_000))
    return found.entries
