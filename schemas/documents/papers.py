"""The files about papers: about one table, whose numbers the board quotes, and about one paper and its findings.

The second kind lists all tables and figures of a paper, and the runs that give its numbers again.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Annotated

from annotated_types import Le, MinLen
from typing_extensions import override

from schemas.documents.base import Count, Distinct, Document, Name, Positive, Text, repeated
from schemas.documents.model_facts import Line, ModelId, WebAddress


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportedColumn(Document):
    """A measure of the table."""

    key: Name
    label: Line
    text: Line
    """What the measure says, and which values are good."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportedRow(Document):
    """The published values of one model."""

    label: Line
    """Name that the paper gives the model."""
    model: ModelId | None = None
    """Id of the model on this board; None if the paper's name leaves it open, or nothing here is about the model."""
    place: Line | None = None
    """Table or figure with this row; None if all rows are in that of the whole table."""
    values: dict[Name, float]
    """Values by the keys of the columns; what is not printed is left out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportedTable(Document):
    """Published numbers, with where they stand. They are quoted: nothing here can compute them, and they never rank."""

    schema_file = "schemas/documents/reported_table.schema.json"

    benchmark: Name
    title: Line
    paper: Line
    """Title of the paper."""
    address: WebAddress
    """Page on which the numbers or the paper can be read."""
    place: Line
    """Table or figure of the paper."""
    page: Positive | None = None
    page_reason: Line | None = None
    """Why the page is unknown; None if it is known."""
    measured: Annotated[tuple[Line, ...], MinLen(1)]
    """What was measured, on which data and with which prompt, in sentences."""
    digits: Annotated[Count, Le(6)] = 3
    """Number of digits that the paper prints after the point."""
    columns: tuple[ReportedColumn, ...] = ()
    rows: tuple[ReportedRow, ...] = ()
    missing: Line | None = None
    """Why no number can be quoted; None if there are rows."""

    @override
    def problems(self) -> Iterator[str]:
        if (self.page is None) == (self.page_reason is None):
            yield "page: give the page, or say in page_reason why it is unknown; not both"
        if bool(self.rows) == (self.missing is not None):
            yield "rows: give the published rows, or say in missing why there are none; not both"
        keys = [column.key for column in self.columns]
        for key in repeated(keys):
            yield f"columns: {key} stands twice; keep one"
        for row in self.rows:
            if unknown := sorted(row.values.keys() - set(keys)):
                yield f"rows: {row.label}: '{unknown[0]}' is no key of a column; have: {', '.join(keys)}"
            if not row.values:
                yield f"rows: {row.label} has no value; remove the row"
        for label in repeated((row.label, row.place) for row in self.rows):
            yield f"rows: {label[0]} stands twice; keep one"


@dataclass(frozen=True, slots=True, kw_only=True)
class PaperMeasure(Document):
    """A value to look up among the results of this board: of each model the first result that fits.

    Where two are compared, both are of one version of the model, and of one version of the dataset if it is the same.
    """

    metric: Name
    """Name of a metric or index."""
    label: Line | None = None
    """Heading of its column; None for that of the metric, or of the published column."""
    group: dict[Name, Line] = field(default_factory=dict)
    """Slice of the items; empty for all."""
    benchmark: Name | None = None
    """None for the first benchmark of the paper."""
    dataset: Name | None = None
    """Name of the dataset, in its newest version that has results; None for any."""
    config: Name | None = None
    prompt: Name | None = None
    set_row: Line | None = None
    """Row of the comparison of sets of examples that has it; None for a metric or index itself."""
    n_examples: Count | None = None
    """Number of examples of these sets."""

    @override
    def problems(self) -> Iterator[str]:
        if (self.set_row is None) != (self.n_examples is None):
            yield "set_row and n_examples: give both or neither"


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim(Document):
    """A finding of the paper, and the comparison that tests it on results of this board.

    The comparison is one of these: ``higher`` is above ``lower`` or above ``than``, ``lower`` is below ``than``, or
    models are ordered alike by both ``orders``.
    """

    text: Line
    place: Line
    """Where the paper says so."""
    words: Line | None = None
    """What is compared here, in plain words."""
    higher: PaperMeasure | None = None
    lower: PaperMeasure | None = None
    than: float | None = None
    orders: tuple[PaperMeasure, ...] = ()
    untested: Line | None = None
    """Why nothing here can test it; None if something can."""

    @override
    def problems(self) -> Iterator[str]:
        given = (self.higher, self.lower, self.than)
        n_given = sum(one is not None for one in given)
        is_compared = (n_given, len(self.orders)) in {(2, 0), (0, 2)}
        if is_compared == (self.untested is not None) or (not is_compared and (n_given or self.orders)):
            yield (
                "give two of higher, lower and than, or two orders, or say in untested why nothing here tests "
                "the claim; only one of these"
            )
        if any(one is not None and one.set_row is not None for one in (self.higher, self.lower)):
            yield "set_row: a row of chosen sets has no interval to test by; name a metric or index"
        if is_compared != (self.words is not None):
            yield "words: say what is compared, if something is, and only then"


@dataclass(frozen=True, slots=True, kw_only=True)
class NumberList(Document):
    """Numbers that the paper prints, and what it computes from them, which is computed again."""

    label: Line
    numbers: Annotated[tuple[float, ...], MinLen(2)]
    """Such as the accuracy of each class."""
    printed: dict[Name, float]
    """Values as printed, by the name of the function of the benchmark's pages that computes them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PaperPart(Document):
    """A table or figure of the paper, or several that show the same."""

    number: Line
    """As the paper numbers it, or what it shows if no source at hand gives the number."""
    shows: Line
    """What it shows, in own words."""
    reported: Name | None = None
    """File of published values in ``leaderboard/reported``, without ending; None if none are quoted. Without measures
    all of it is shown, compared with nothing."""
    measures: dict[Name, PaperMeasure] = field(default_factory=dict)
    """What is compared with each column of the published values, or shown alone without these, by the column's key."""
    draws_orders: bool = False
    """True to draw how the order of the models changes from measure to measure, which all have the ideal 1."""
    lists: tuple[NumberList, ...] = ()
    figures: Annotated[tuple[Name, ...], Distinct()] = ()
    """Figures of the benchmark's pages that show the same of results here, whose measures decide the status."""
    tests: Annotated[tuple[Text, ...], Distinct()] = ()
    """Tests that compute it again from published files, as ``FILE::FUNCTION``."""
    runs: Annotated[tuple[Name, ...], Distinct()] = ()
    """Runs that give its numbers for other models."""
    instead: Line | None = None
    """What is shown here in its place, if that is another quantity, so that it is not reproduced; None if it is not."""
    note: Line | None = None
    """What a reader must know about the comparison."""
    impossible: Line | None = None
    """Why it cannot be reproduced; None if it can be."""

    @override
    def problems(self) -> Iterator[str]:
        if self.figures and not self.measures:
            yield "figures: give measures too, by which it is known whether there are results to draw"
        ways = (self.measures, self.lists, self.figures, self.tests, self.runs)
        if any(ways) == (self.impossible is not None):
            yield "give measures, lists, figures, tests or runs, or say in impossible why there are none; not both"


@dataclass(frozen=True, slots=True, kw_only=True)
class PaperRun(Document):
    """A run of a model that the paper made: a dataset, asked by some prompts."""

    name: Name
    words: Line
    """What is asked, in plain words."""
    dataset: Name
    """Name of the dataset, and of its folder."""
    build: Line
    """Arguments of ``biasboard build`` that build it, without ``--input`` and ``--out``."""
    input: Line | None = None
    """What ``--input`` must name; None if nothing is read."""
    answers: Name | None = None
    """Benchmark whose authors published answers, which are imported; None if models are asked."""
    configs: Annotated[tuple[Name, ...], MinLen(1), Distinct()]
    prompts: Annotated[tuple[Name, ...], MinLen(1), Distinct()]
    n_requests: Count | None = None
    """Requests to each model; None if nobody has counted them."""
    n_prompt_tokens: Count | None = None
    """Prompt tokens, those that prompts begin with alike only once."""
    n_completion_tokens: Count | None = None
    """Largest number of generated tokens."""
    counted: Line | None = None
    """How and when they were counted."""
    uncounted: Line | None = None
    """Why nothing was counted; None if it was."""

    @override
    def problems(self) -> Iterator[str]:
        counts = (self.n_requests, self.n_prompt_tokens, self.n_completion_tokens, self.counted)
        n_known = sum(one is not None for one in counts)
        if self.answers is not None:
            if n_known or self.uncounted is not None:
                yield "answers: published answers are imported, so that nothing is counted; leave the numbers out"
        elif n_known not in (0, len(counts)) or (n_known == 0) != (self.uncounted is not None):
            yield "give n_requests, n_prompt_tokens, n_completion_tokens and counted, or uncounted with the reason"


@dataclass(frozen=True, slots=True, kw_only=True)
class PaperModel(Document):
    """A model of the paper."""

    label: Line
    """Name that the paper gives it."""
    id: ModelId | None = None
    """Id of the Hub, or the name at its endpoint; None if the paper leaves it open."""
    parameters: Positive | None = None
    """Number of parameters, where no file of ``leaderboard/models`` is about the model; None if it is unknown."""
    active_parameters: Positive | None = None
    """Parameters that a token uses, of a mixture of experts; None if it uses all."""
    is_remote: bool = False
    """True if it answers only at an endpoint."""
    gone: Line | None = None
    """Why it can no longer be asked; None if it can, as far as is known."""
    file: Text | None = None
    """Its name in the names of the files of published answers; None if there are none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reproduction(Document):
    """A paper, and how far its numbers are reproduced."""

    schema_file = "schemas/documents/reproduction.schema.json"

    benchmarks: Annotated[tuple[Name, ...], MinLen(1), Distinct()]
    """Benchmarks whose results are compared; the pages of the first one cite the paper."""
    cites: Text
    """Key of the paper among those that the pages of the first benchmark cite."""
    title: Line
    """What the paper is about, as the heading of its page."""
    asks: Line
    """The question of the paper, in one sentence for laymen."""
    sources: Line
    """From what this list of tables and figures was made, and what no source at hand told."""
    claims: Annotated[tuple[Claim, ...], MinLen(1)]
    parts: Annotated[tuple[PaperPart, ...], MinLen(1)]
    models: Annotated[tuple[PaperModel, ...], MinLen(1)]
    runs: Annotated[tuple[PaperRun, ...], MinLen(1)]

    @override
    def problems(self) -> Iterator[str]:
        of_claims = (one for claim in self.claims for one in (claim.higher, claim.lower, *claim.orders))
        of_parts = (one for part in self.parts for one in part.measures.values())
        measures = [one for one in (*of_claims, *of_parts) if one is not None]
        inner: tuple[tuple[str, Document], ...] = (
            *((f"claims: {claim.text}", claim) for claim in self.claims),
            *((f"parts: {part.number}", part) for part in self.parts),
            *((f"runs: {run.name}", run) for run in self.runs),
            *((f"measures: {measure.metric}", measure) for measure in measures),
        )
        for where, document in inner:
            yield from (f"{where}: {problem}" for problem in document.problems())
        names = [run.name for run in self.runs]
        for kind, values in (
            ("runs", names),
            ("parts", [part.number for part in self.parts]),
            ("models", [model.label for model in self.models]),
        ):
            for value in repeated(values):
                yield f"{kind}: {value} stands twice; keep one"
        for part in self.parts:
            if unknown := sorted({*part.runs} - {*names}):
                yield f"parts: {part.number}: '{unknown[0]}' is no run; have: {', '.join(names)}"
