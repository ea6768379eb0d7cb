"""The file about one model: who made it, how large it is, and under which terms it is published."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Annotated, Literal, TypeAlias, get_args

from annotated_types import MinLen
from pydantic import StringConstraints
from typing_extensions import override

from schemas.documents.base import Day, Distinct, Document, Positive

ModelId: TypeAlias = Annotated[
    str, StringConstraints(max_length=200, pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*(/[A-Za-z0-9][A-Za-z0-9._-]*)*$")
]
Line: TypeAlias = Annotated[str, StringConstraints(min_length=1, max_length=300, pattern=r"^[^\u0000-\u001f\u007f]+$")]
WebAddress: TypeAlias = Annotated[
    str, StringConstraints(max_length=500, pattern=r"^https://[A-Za-z0-9.-]+(/[A-Za-z0-9._~/@%+?=&#:-]*)?$")
]
Time: TypeAlias = Annotated[str, StringConstraints(pattern=r"^[0-9]{4}-[0-9]{2}(-[0-9]{2})?$")]
Fact: TypeAlias = Literal["parameters", "open_weights", "kind", "licence", "released"]
FACTS: tuple[Fact, ...] = get_args(Fact)
"""Facts that a file either gives with a source or declares unknown with a reason."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FactSource(Document):
    """A public page that states facts about a model."""

    facts: Annotated[tuple[Fact | Literal["released_by"], ...], MinLen(1), Distinct()]
    address: WebAddress
    looked_at: Day
    """Date on which somebody read the page."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelFacts(Document):
    """Facts about one model. None stands for unknown; the reason is in ``unknown``."""

    schema_file = "schemas/documents/model_facts.schema.json"

    id: ModelId
    """Id of the model in results."""
    other_ids: Annotated[tuple[ModelId, ...], Distinct()] = ()
    """Ids under which results name the same model, such as a copy in another file format."""
    short_name: Annotated[str, StringConstraints(min_length=1, max_length=40, pattern=r"^[^\u0000-\u001f\u007f]+$")]
    """Name for pages, without the maker."""
    family: Line
    """Name that the models of one series share, such as Llama."""
    maker: Line
    parameters: Positive | None = None
    open_weights: bool | None = None
    """True if anybody may download the weights, also if they must accept a licence first."""
    kind: Literal["base", "instruction-tuned"] | None = None
    licence: Line | None = None
    """SPDX identifier, or the title of the licence or terms of use."""
    released: Time | None = None
    """Day or month of the first publication."""
    released_by: Time | None = None
    """Day or month by which the model was there, as of a changelog that names it, where ``released`` is unknown."""
    address: WebAddress
    """Page of the model."""
    note: Line | None = None
    """What a reader must know about the results under this id; None for nothing."""
    unknown: dict[Fact, Line] = field(default_factory=dict)
    """Reason for each fact that is unknown."""
    sources: tuple[FactSource, ...] = ()
    """Pages of the maker, papers and licences; what only others state is unknown."""

    @override
    def problems(self) -> Iterator[str]:
        sourced = {fact for source in self.sources for fact in source.facts}
        for fact in FACTS:
            is_given = getattr(self, fact) is not None
            if not is_given and fact not in self.unknown:
                yield f"{fact}: is missing; give it with a source, or say why it is unknown in [unknown]"
            elif is_given and fact in self.unknown:
                yield f"unknown.{fact}: {fact} is given as well; remove one of them"
            elif is_given and fact not in sourced:
                yield f"{fact}: has no source; name a page that states it in [[sources]]"
        if self.released_by is not None and self.released is not None:
            yield "released_by: released is given as well, which says more; remove released_by"
        elif self.released_by is not None and "released_by" not in sourced:
            yield "released_by: has no source; name a page of that date in [[sources]]"
