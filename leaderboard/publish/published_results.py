"""The results of runs as what a repository of the Hub is to hold: their files, a card, and a table of measures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path, PurePosixPath

from typing_extensions import override

from biasboard.ground import strict_json
from biasboard.ground.errors import DataError
from biasboard.ground.hub_publishing import MOST_NAMES, OF_THE_HUB, Publication
from biasboard.ground.hub_repository import HubFile, HubRepository, HubState, LocalFile, local_file
from biasboard.ground.plain_text import listed, printable
from biasboard.ground.progress import note
from leaderboard.publish.results_card import MEASURES, card_of, write_measures
from leaderboard.verify.intake import MOST_RESULT_BYTES
from leaderboard.verify.public_files import PublicFiles, has_texts, models_of, place_for
from schemas.documents.result import Result
from schemas.files import contract
from schemas.folders.dataset_folder import CARD, MANIFEST
from schemas.folders.run_folder import RESULT

_DEPTH = 4
"""Number of parts of the path of a result: dataset, model, result, file."""


class PublishedResults(Publication):
    """Results of one's own, beside those that are in the repository already, which the card and the table cover too."""

    def __init__(self, public: Sequence[PublicFiles], scratch: Path) -> None:
        """Hash the files.

        Args:
            public: The files of each result.
            scratch: Existing folder for the card and the table; the caller removes it afterwards.

        Raises:
            DataError: two results belong into the same place.
        """
        self._results: dict[str, Result] = {}
        self._files: dict[str, LocalFile] = {}
        self._shown = {one.place.as_posix() for one in public if one.withheld is None}
        self._scratch = scratch
        runs: dict[str, Path] = {}
        for one in public:
            place = one.place.as_posix()
            if place in runs:
                raise DataError(f"{one.run}: is of the same model and questions as {runs[place]}; name one of them")
            runs[place] = one.run
            self._results[place] = one.result
            for path in one.files:
                name = f"{place}/{path.name}"
                self._files[name] = local_file(path, name)
        self.title = f"{len(runs)} {'result' if len(runs) == 1 else 'results'} of {models_of(public)}"

    @override
    def varies(self, name: str) -> bool:
        # Both are made anew of all results that are in the repository.
        return name in (CARD, MEASURES)

    @override
    def files_for(self, repository: HubRepository, state: HubState | None) -> Mapping[str, LocalFile]:
        results, before = dict(self._results), None
        if state is not None:
            present = repository.files(state.head)
            there = _results_in(repository, state.head, present)
            for place in sorted(there.keys() & self._shown):
                if (what := _lacks(there[place], results[place])) is not None:
                    raise DataError(
                        f"--repo {repository.repo}: {place} was published without its {what}; repeat with "
                        "--withhold-texts, or remove that folder there first"
                    )
            results = there | results
            if CARD in present:
                before = _decoded(repository.contents([CARD], state.head)[CARD], f"--repo {repository.repo}: {CARD}")
        results = dict(sorted(results.items()))
        text = card_of(results, repository.repo, before)
        (self._scratch / CARD).write_text(text, encoding="utf-8", newline="")
        write_measures(results, self._scratch / MEASURES)
        return {**self._files, **{name: local_file(self._scratch / name, name) for name in (CARD, MEASURES)}}

    @override
    def stale(self, files: Mapping[str, LocalFile], present: Mapping[str, HubFile]) -> list[str]:
        # What lies beside an unchanged result, such as a submission, belongs to it.
        changed = {
            place
            for place in self._results
            if (there := present.get(f"{place}/{RESULT}")) is None or not there.is_same(files[f"{place}/{RESULT}"])
        }
        return sorted(name for name in set(present) - set(files) if _place(name) in changed)

    @override
    def check_replaceable(self, repository: HubRepository, state: HubState, present: Mapping[str, HubFile]) -> None:
        """Check that the repository holds results, or nothing yet."""
        foreign = sorted(set(present) - {*OF_THE_HUB, CARD})
        if MANIFEST in present or (foreign and not any(map(_is_result, present))):
            raise DataError(
                f"--repo {repository.repo}: holds other files than results ({listed(foreign, most=MOST_NAMES)}); give "
                "a repository of results, or a new one"
            )


def _is_result(name: str) -> bool:
    path = PurePosixPath(name)
    return path.name == RESULT and len(path.parts) == _DEPTH


def _place(name: str) -> str:
    return PurePosixPath(name).parent.as_posix()


def _lacks(there: Result, now: Result) -> str | None:
    """Return what a published result lacks that this one, of the same model, would add; None if it lacks nothing."""
    if there.withheld is not None:
        return "texts"
    # Without its prompts, a result of options differs by its records alone.
    is_same = there != now and replace(there, records=now.records) == now
    return "prompts" if is_same and not has_texts(now.signature) else None


def _results_in(repository: HubRepository, commit: str, present: Mapping[str, HubFile]) -> dict[str, Result]:
    """Return the results of models in a commit by their place; one that is not sound or not in its place is named."""
    names = [name for name in present if _is_result(name)]
    large = [name for name in names if present[name].size > MOST_RESULT_BYTES]
    for name in large:
        note(printable(f"left out of the card: --repo {repository.repo}: {name}: is too large", most=1_000))
    results = {}
    for name, content in repository.contents([name for name in names if name not in large], commit).items():
        where = f"--repo {repository.repo}: {name}"
        try:
            result = contract.load(strict_json.loads(_decoded(content, where), where=where), Result, where=where)
        except DataError as error:
            note(printable(f"left out of the card: {error}", most=1_000))
            continue
        place = _place(name)
        if place != place_for(result).as_posix():
            note(printable(f"left out of the card: {where}: belongs into {place_for(result)}", most=1_000))
        elif result.model.endpoint != "baseline":
            results[place] = result
    return results


def _decoded(content: bytes, where: str) -> str:
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise DataError(f"{where}: is not UTF-8; correct it there") from error
