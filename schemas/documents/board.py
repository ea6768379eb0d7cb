"""The files of a board: what submitters and maintainers say about results, and the keys by which these are checked.

A submitter adds ``submission.json`` to a result; maintainers record their decisions in ``register.json``. An answer
key replaces a dataset whose texts a board may not hold.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import date
from types import MappingProxyType
from typing import Annotated, Literal, TypeAlias

from annotated_types import Ge, MinLen
from pydantic import StringConstraints
from typing_extensions import override

from schemas.documents.base import NAME_PATTERN, Count, Day, Document, Name, Positive, Sha256, Text, repeated
from schemas.documents.result import Signature

Decision: TypeAlias = Literal["accepted", "preferred", "withdrawn"]
"""``preferred`` settles a dispute in favour of a result; ``withdrawn`` keeps it visible without a rank."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Submission(Document):
    """The statement of a submitter about one result, in the folder of the result."""

    schema_file = "schemas/documents/submission.schema.json"

    schema_version: Literal["1.0"]
    contact: Annotated[
        str, StringConstraints(min_length=3, max_length=200, pattern=r"^[^\u0000-\u001f\u007f-\u009f\u2028\u2029]*$")
    ]
    """Address or account at which the submitter answers questions."""
    model_card: Annotated[
        str, StringConstraints(max_length=500, pattern=r"^https://[A-Za-z0-9.-]+(/[A-Za-z0-9._~/@%+-]*)?$")
    ]
    """Https address of a description of the model."""
    train_data_disclosure: Annotated[str, StringConstraints(min_length=1, max_length=2000)] | None
    """Statement on whether the model was trained on items of the benchmark; None if the submitter says nothing."""
    run_date: Day
    """Date on which the records were written."""
    submitted: Day
    """Date of the submission."""
    biasboard: Annotated[str, StringConstraints(min_length=1, max_length=100)]
    """Version of biasboard that made the submission."""
    result_sha256: Sha256
    """SHA-256 of the bytes of ``result.json``, which names the hashes of the other files."""

    @override
    def problems(self) -> Iterator[str]:
        yield from _no_days(self.run_date, self.submitted)
        if self.submitted < self.run_date:
            yield f"submitted: {self.submitted} is before the run, of {self.run_date}; submit the run again"


@dataclass(frozen=True, slots=True, kw_only=True)
class Rerun(Document):
    """A comparison of stored answers with those that a maintainer got from the model that a result names."""

    date: Day
    n_items: Positive
    """Number of items that were drawn at random and asked again."""
    n_agreeing: Count
    """Number of items whose answers agree within the tolerance."""
    tolerance: Annotated[float, Ge(0)]
    """Tolerance of the less exact of both precisions, in nats for a text of one token."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Acceptance(Document):
    """A decision of a maintainer about one result."""

    place: Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9._@-]*(/[A-Za-z0-9][A-Za-z0-9._@-]*)*$")]
    """Folder of the result, relative to the folder of all accepted results."""
    result_sha256: Sha256
    """SHA-256 of the bytes of ``result.json``; a result that was changed since then is not accepted."""
    accepted: Day
    """Date of the acceptance; of several results with the same answers, the one that was accepted first is ranked."""
    owner: Annotated[str, StringConstraints(max_length=100, pattern=NAME_PATTERN)]
    """Account at the code host that may submit results of this model."""
    decision: Decision
    reason: Annotated[str, StringConstraints(min_length=1, max_length=2000)] | None
    """Reason for the decision; None if the result is just accepted."""
    rerun: Rerun | None
    decided: Day | None = None
    """Date of a decision other than the acceptance itself; None if there is none, or in older registers."""
    texts_compared: Day | None = None
    """Date on which a maintainer made this result again from its texts, which are kept elsewhere; None if nobody has,
    or if the texts are in the records."""
    scores_compared: Day | None = None
    """Date on which a maintainer scored a sample of the texts again, with every scorer that verification does not run;
    None if nobody has, or if verification runs all of them."""

    @override
    def problems(self) -> Iterator[str]:
        rerun = None if self.rerun is None else self.rerun.date
        yield from _no_days(self.accepted, self.decided, self.texts_compared, self.scores_compared, rerun)
        if self.rerun is not None and self.rerun.n_agreeing > self.rerun.n_items:
            yield "more items agree than were asked again; correct it"
        if self.decision != "accepted" and self.reason is None:
            yield f"reason: null, and the result is {self.decision}; say why"


@dataclass(frozen=True, slots=True, kw_only=True)
class Register(Document):
    """All decisions about accepted results."""

    schema_file = "schemas/documents/register.schema.json"
    has_later_fields = True

    schema_version: Literal["1.0"]
    results: tuple[Acceptance, ...]

    @property
    def by_place(self) -> dict[str, Acceptance]:
        """The decisions by the folder of their result."""
        return {one.place: one for one in self.results}

    def tries(self, more: Mapping[str, str] = MappingProxyType({})) -> dict[str, str]:
        """Return how many results an owner has handed in to the same questions, in a sentence, by the folder of each.

        Withdrawn ones count, and so does every way to score the answers: of many tries, one does well by chance. Fewer
        than three are no choice among many.

        Args:
            more: Owners by the folders of further results. A folder is named after dataset, model, config, prompt and a
                key.
        """
        owners = {one.place: one.owner for one in self.results} | dict(more)
        parts = ((place, owner, place.split("/")) for place, owner in owners.items())
        asked = {place: (owner.casefold(), of[0], of[-1].rpartition("-")[0]) for place, owner, of in parts}
        counts = Counter(asked.values())
        return {
            place: f"One of {counts[of]} results that {owner} has handed in to {dataset}, {questions}, withdrawn ones "
            "included: of many, one does well by chance."
            for place, of in asked.items()
            for owner, dataset, questions in [of]
            if counts[of] > 2
        }

    @override
    def problems(self) -> Iterator[str]:
        for folder, n in repeated(entry.place for entry in self.results).items():
            yield f"results: {folder} stands {n} times; keep one decision about it"
        for entry in self.results:
            yield from (f"results: {entry.place}: {problem}" for problem in entry.problems())


def _no_days(*days: str | None) -> Iterator[str]:
    for day in days:
        try:
            date.fromisoformat(day or "2026-01-31")
        except ValueError:
            yield f"'{day}' is no day of the calendar; write one such as 2026-01-31"


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyPart(Document):
    """Hashes of what the records of one config must contain, whatever model answers."""

    config: Name
    n_items: Positive
    facts_sha256: Sha256
    """SHA-256 of the facts about all items in order: ids, splits, clusters, pairs, targets, references and groups."""
    requests_sha256: Sha256 | None
    """SHA-256 of the requests about all items in order; None if the answers were given elsewhere, to requests that
    nobody can rebuild."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyExtent(Document):
    """Hashes of a result on the items that are asked by default, where these are not all."""

    limit: Positive
    """Largest number of items of each config, not counting the splits that only support a measurement."""
    n_items: Positive
    items_sha256: Sha256
    """SHA-256 of these items, as the signature of such a result has it."""
    parts: Annotated[tuple[KeyPart, ...], MinLen(1)]
    """The config, or the parts of the suite in order, with these items alone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerKey(Document):
    """Everything that a result must have in common with the dataset and the prompt that it names.

    A key holds hashes and no text. It can therefore be published for a dataset whose licence forbids publishing it.
    """

    schema_file = "schemas/documents/answer_key.schema.json"
    has_later_fields = True

    schema_version: Literal["1.0"]
    dataset_sha256: Sha256
    """SHA-256 of the contents of the whole dataset, as its manifest has it."""
    signature: Signature
    """Signature of a result on all items of the config or suite; its normalisation is the default one."""
    parts: Annotated[tuple[KeyPart, ...], MinLen(1)]
    """The config, or the parts of the suite in order."""
    items_path: Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*\.npy$")]
    """Name of the file beside the key with the SHA-256 of each item: its facts and its requests."""
    items_file_sha256: Sha256
    limited: KeyExtent | None = None
    """The items that are asked by default, whose results are ranked too; None if all are asked by default."""
    licence: Text | None = None
    """Licence of the dataset, for boards that do not have it; None if the key was made before it held one."""

    @override
    def problems(self) -> Iterator[str]:
        yield from (f"signature.{problem}" for problem in self.signature.problems())
