"""The results of runs as what a repository of the Hub is to hold: their files, a card, and a table of measures."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING
from urllib.parse import quote

from typing_extensions import override

from biasboard.ground import strict_json
from biasboard.ground.errors import DataError
from biasboard.ground.hub_publishing import MOST_NAMES, OF_THE_HUB, HubRepository, LocalFiles, Publication, differences
from biasboard.ground.plain_text import listed, printable
from biasboard.ground.progress import note
from evaluators.benchmark import load_benchmark
from leaderboard.benchmark_pages import load_pages
from leaderboard.pages.markup import source_markdown, value_text
from leaderboard.verify.entries import label_of
from leaderboard.verify.intake import MOST_RESULT_BYTES
from leaderboard.verify.submissions import PublicFiles, has_texts, models_of, place_for
from schemas.documents.result import Metric, Result
from schemas.files import contract
from schemas.folders.dataset_folder import CARD, MANIFEST
from schemas.folders.run_folder import RESULT

if TYPE_CHECKING:
    from huggingface_hub import RepoFile

MEASURES = "measures.parquet"
_BEGIN, _END = "<!-- results: written by biasboard publish -->", "<!-- end of results -->"
_FENCE = "---\n"
"""Line before and after the metadata of a card."""
# Without this the Hub would take the answers for rows of the data, and its library cannot read their maps.
_CONFIGS = f"""configs:
- config_name: measures
  data_files:
  - split: test
    path: {MEASURES}"""


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


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasureRow:
    """A headline measure of a result, as a row of the table of all measures."""

    model: str
    revision: str | None
    precision: str | None
    backend: str
    benchmark: str
    dataset: str
    dataset_version: str
    config: str
    prompt: str
    n_items: int
    measure: str
    label: str
    version: str
    value: float | None
    """None if there is no value, for the reason in its column."""
    low: float | None
    """Lower end of the 95 % interval."""
    high: float | None
    ideal: float | None
    reason: str | None
    result: str
    """Folder of the result in the repository."""


def card_of(results: Mapping[str, Result], repo: str, before: str | None) -> str:
    """Return the card of a repository of results.

    What people wrote into the card stays as it is: its metadata, and the text around the block. Metadata that name no
    configs get ours.

    Args:
        results: All results in the repository by their folder, sorted.
        repo: Id of the repository.
        before: The card that it has; None if it has none.

    Raises:
        DataError: the card has only one of the comments around the block, or several of them.
    """
    text = f"{_FENCE}tags: [biasboard, bias, evaluation-results]\n{_FENCE}\n# Results of {repo}\n"
    if before is not None:
        text = before.removeprefix("\ufeff").replace("\r\n", "\n")
    metadata, body = "", text
    if text.startswith(_FENCE) and f"\n{_FENCE}" in text:
        metadata, _, body = text.removeprefix(_FENCE).partition(f"\n{_FENCE}")
    if not re.search(r"^configs\s*:", metadata, re.MULTILINE):
        metadata = f"{metadata.rstrip()}\n{_CONFIGS}".lstrip()
    if (body.count(_BEGIN), body.count(_END)) not in ((0, 0), (1, 1)) or body.find(_BEGIN) > body.find(_END):
        raise DataError(
            f"--repo {repo}: {CARD} there has not both comments around the results, '{_BEGIN}' and '{_END}', once and "
            "in this order; take both and what is between them out"
        )
    head, _, rest = body.partition(_BEGIN)
    tail = rest.partition(_END)[2]
    block = "\n\n".join([_BEGIN, *_body(results, repo), _END])
    return f"{_FENCE}{metadata.strip()}\n{_FENCE}{head.rstrip()}\n\n{block}\n{tail.lstrip()}"


def _body(results: Mapping[str, Result], repo: str) -> Iterator[str]:
    yield (
        "Answers of language models to bias benchmarks, and what was measured from them. A folder "
        "`DATASET@VERSION/MODEL/RESULT` holds one result: `result.json` has every measure with its interval and its "
        "reason if it has no value, and `records.parquet` has every answer, or its hash where texts are withheld. "
        f"`{MEASURES}`, which the Hub's viewer and `datasets.load_dataset` show, has the measures below."
    )
    yield (
        "`biasboard publish` computed every number of a result again from its answers before it sent the result; what "
        "others put here was not checked. This computes all of them again, without the models. Where texts are "
        "withheld, that takes the complete run, and datasets that biasboard cannot build must lie in `out/datasets`."
    )
    yield (
        f"```sh\npip install 'biasboard[site]'\nhf download {repo} --repo-type dataset --local-dir results\n"
        "biasboard verify results\nbiasboard board --results results\n```"
    )
    yield (
        "Values may be compared within a table: its models were asked the same items in the same way. Brackets are "
        "95 % intervals. **A predictor without skill can be perfectly even**: the board, which the last command makes, "
        "shows what such predictors get on the same items, and ranks only models that do better."
    )
    yield "Prompts and answers keep the licences of the datasets and models that they come from."
    yield (
        "`biasboard publish` writes the part between the two comments in the source of this card anew; what you write "
        "around it stays."
    )
    tables: dict[tuple[str, ...], dict[str, Result]] = {}
    for place, result in results.items():
        # Values of different versions of a metric, such as those of two text scorers, are not comparable.
        versions = (f"{metric.name} {metric.version}" for metric in _headlines(result) if metric.value is not None)
        tables.setdefault((str(result.signature), result.signature_sha256, *versions), {})[place] = result
    for _, table in sorted(tables.items()):
        yield from _table(table, repo)


def _table(table: Mapping[str, Result], repo: str) -> Iterator[str]:
    from huggingface_hub import constants

    signature = next(iter(table.values())).signature
    pages = load_pages(signature.benchmark)
    yield f"## {source_markdown(f'{pages.heading}: {pages.config_words(signature.config, signature.prompt)}')}"
    yield (
        f"`{signature.dataset}` {signature.dataset_version}, config `{signature.config}`, prompt `{signature.prompt}`, "
        f"{signature.n_items:,} items."
    )
    measured = {place: {metric.name: metric for metric in _headlines(result)} for place, result in table.items()}
    # A measure that no model has a value of does not exist under these conditions.
    valued = {name: metric for of_one in measured.values() for name, metric in of_one.items() if metric.reason is None}
    ideals = {name: "" if one.ideal is None else f", ideal {one.ideal:g}" for name, one in valued.items()}
    header = ("model", *(source_markdown(f"{pages.label(name)}{ideal}") for name, ideal in ideals.items()))
    lines = [header, tuple("---" for _ in header)]
    named = Counter(result.model.id for result in table.values())
    for place, result in table.items():
        model = result.model.id if named[result.model.id] == 1 else label_of(result.model)
        found = (measured[place].get(name) for name in valued)
        cells = (
            source_markdown("" if one is None else f"none: {one.reason}" if one.reason else value_text(one))
            for one in found
        )
        address = f"{constants.ENDPOINT}/datasets/{repo}/tree/main/{quote(place, safe='/@')}"
        lines.append((f"[{source_markdown(model)}]({address})", *cells))
    yield "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _headlines(result: Result) -> list[Metric]:
    return load_benchmark(result.signature.benchmark).headlines(result)


def write_measures(results: Mapping[str, Result], path: Path) -> None:
    """Write the headline measures of results as a table, one row each."""
    from schemas.files import arrow_files

    rows = []
    for place, result in results.items():
        model, signature, pages = result.model, result.signature, load_pages(result.signature.benchmark)
        for metric in _headlines(result):
            interval = metric.interval
            row = MeasureRow(
                model=model.id,
                revision=model.revision,
                precision=model.precision,
                backend=model.backend,
                benchmark=signature.benchmark,
                dataset=signature.dataset,
                dataset_version=signature.dataset_version,
                config=signature.config,
                prompt=signature.prompt,
                n_items=signature.n_items,
                measure=metric.name,
                label=pages.label(metric.name),
                version=metric.version,
                value=metric.value,
                low=None if interval is None else interval.low,
                high=None if interval is None else interval.high,
                ideal=metric.ideal,
                reason=metric.reason,
                result=place,
            )
            rows.append(asdict(row))
    arrow_files.write(path, rows, MeasureRow)
