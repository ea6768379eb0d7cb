"""The results of runs as what a repository of the Hub is to hold: their files, a card, and a table of measures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from typing_extensions import override

from biasboard.ground import strict_json
from biasboard.ground.errors import DataError
from biasboard.ground.hub_publishing import MOST_NAMES, OF_THE_HUB, HubRepository, LocalFiles, Publication, differences
from biasboard.ground.plain_text import listed, printable
from biasboard.ground.progress import note
from leaderboard.publish.results_card import MEASURES, card_of, write_measures
from leaderboard.verify.intake import MOST_RESULT_BYTES
from leaderboard.verify.submissions import PublicFiles, has_texts, models_of, place_for
from schemas.documents.result import Result
from schemas.files import contract
from schemas.folders.dataset_folder import CARD, MANIFEST
from schemas.folders.run_folder import RESULT

if TYPE_CHECKING:
    from huggingface_hub import RepoFile


@dataclass(frozen=True, kw_only=True)
class PublishedResults(Publication):
    """Results of one's own, beside those that are in the repository already, which the card and the table cover too."""

    public: Sequence[PublicFiles]
    scratch: Path
    """Existing folder for the card and the table; the caller removes it afterwards."""

    @override
    def files_for(self, repository: HubRepository) -> LocalFiles:
        results, before = {one.place.as_posix(): one.result for one in self.public}, None
        if repository.head is not None:
            present = repository.files(repository.head)
            there = _results_in(repository, present)
            for one in self.public:
                place = one.place.as_posix()
                if one.withheld is None and place in there and (what := _lacks(there[place], one.result)) is not None:
                    raise DataError(
                        f"--repo {repository.repo}: {place} was published without its {what}; repeat with "
                        "--withhold-texts, or remove that folder there first"
                    )
            results = there | results
            if CARD in present:
                before = _decoded(repository.contents([CARD])[CARD], f"--repo {repository.repo}: {CARD}")
        results = dict(sorted(results.items()))
        text = card_of(results, repository.repo, before)
        (self.scratch / CARD).write_text(text, encoding="utf-8", newline="")
        write_measures(results, self.scratch / MEASURES)
        return {**self.files, CARD: self.scratch / CARD, MEASURES: self.scratch / MEASURES}

    @override
    def to_delete(self, repository: HubRepository, files: LocalFiles, present: Mapping[str, RepoFile]) -> Sequence[str]:
        """Return what lies beside results that change, after checking that the repository holds results or nothing."""
        foreign = sorted(set(present) - {*OF_THE_HUB, CARD})
        if MANIFEST in present or (foreign and not any(map(_is_result, present))):
            raise DataError(
                f"--repo {repository.repo}: holds other files than results ({listed(foreign, most=MOST_NAMES)}); give "
                "a repository of results, or a new one"
            )
        # What lies beside an unchanged result, such as a submission, belongs to it.
        changed = {_place(name) for name in differences(self.files, present) if _is_result(name)}
        return sorted(name for name in set(present) - set(files) if _place(name) in changed)


def published_results(public: Sequence[PublicFiles], scratch: Path) -> PublishedResults:
    """Return the results to publish.

    Args:
        public: The files of each result.
        scratch: Existing folder for the card and the table; the caller removes it afterwards.

    Raises:
        DataError: two results belong into the same place.
    """
    runs: dict[Path, Path] = {}
    for one in public:
        if one.place in runs:
            raise DataError(f"{one.run}: is of the same model and questions as {runs[one.place]}; name one of them")
        runs[one.place] = one.run
    return PublishedResults(
        title=f"{len(runs)} {'result' if len(runs) == 1 else 'results'} of {models_of(public)}",
        files={(one.place / path.name).as_posix(): path for one in public for path in one.files},
        public=public,
        scratch=scratch,
    )


def _is_result(name: str) -> bool:
    path = PurePosixPath(name)
    return path.name == RESULT and len(path.parts) == 4  # Dataset, model, result and file.


def _place(name: str) -> str:
    return PurePosixPath(name).parent.as_posix()


def _lacks(there: Result, now: Result) -> str | None:
    """Return what a published result lacks that this one, of the same model, would add; None if it lacks nothing."""
    if there.withheld is not None:
        return "texts"
    # Without its prompts, a result of options differs by its records alone.
    is_same = there != now and replace(there, records=now.records) == now
    return "prompts" if is_same and not has_texts(now.signature) else None


def _results_in(repository: HubRepository, present: Mapping[str, RepoFile]) -> dict[str, Result]:
    """Return the results of models in a repository by place; one that is not sound or not in its place is named."""
    names = [name for name in present if _is_result(name)]
    large = [name for name in names if present[name].size > MOST_RESULT_BYTES]
    for name in large:
        note(printable(f"left out of the card: --repo {repository.repo}: {name}: is too large", most=1_000))
    results = {}
    for name, content in repository.contents([name for name in names if name not in large]).items():
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
