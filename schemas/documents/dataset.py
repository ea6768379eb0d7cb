"""The manifest of a built dataset (``dataset.json``), the candidates that a builder rejected, and the shape of items.

Each file in ``schemas/items`` defines one item shape: the frozen dataclass of a row, and ``SHAPE``, an
:class:`ItemShape`. Several tasks can use items of one shape.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cache, lru_cache
from typing import Annotated, Any, Literal, TypeAlias, cast

from annotated_types import MinLen
from pydantic import GetCoreSchemaHandler, StringConstraints
from pydantic_core import CoreSchema
from typing_extensions import override

from biasboard.ground.errors import ConfigError, DataError
from biasboard.ground.kinds import SHAPES
from biasboard.ground.plain_text import invisible_sign, printable, seen
from biasboard.ground.plugins import HINT
from schemas.documents.base import (
    Count,
    Distinct,
    Document,
    Name,
    PathInFolder,
    Positive,
    SemanticVersion,
    Sha256,
    Text,
    Version,
    repeated,
)


class _Scalar:
    """Gives a union of scalars a single error message instead of one per type."""

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        """Set the message."""
        schema: Any = handler(source)
        schema["schema"] |= {
            "custom_error_type": "scalar",
            "custom_error_message": "is not of type boolean, integer, number, string or null",
        }
        return cast(CoreSchema, schema)


Parameter: TypeAlias = Annotated[bool | int | float | str | None, _Scalar()]


@dataclass(frozen=True, slots=True, kw_only=True)
class Source(Document):
    """A source of rows, described precisely enough to fetch the same bytes again."""

    name: Text
    address: Text
    """URL, or the name of a generator inside this distribution."""
    revision: Text | None
    """Commit, tag or version of the source; None if it has none."""
    sha256: Sha256 | None
    """SHA-256 of the bytes that were read; None for a generator, whose version is given as the revision."""
    licence: Text
    """Licence of the source: its SPDX identifier if there is one."""
    redistributable: bool
    """True if the licence allows publishing a converted copy."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SplitEntry(Document):
    """One parquet file of one config and split."""

    config: Name
    split: Name
    item_shape: Name
    """Name of the row schema, such as ``coreference``, which decides which tasks can use the items; one per config."""
    path: Annotated[
        str, StringConstraints(pattern=r"^data/[A-Za-z0-9][A-Za-z0-9._-]*/[A-Za-z0-9][A-Za-z0-9._-]*\.parquet$")
    ]
    """Path of the file, relative to the dataset folder."""
    n_items: Positive
    content_sha256: Sha256
    """SHA-256 of the items as canonical JSON lines, the same for every version of pyarrow."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Suite(Document):
    """Configs of one item shape that are measured together: a model's answers to all of them are one result."""

    name: Name
    """Name by which the suite is asked; no config has the same."""
    configs: Annotated[tuple[Name, ...], MinLen(1), Distinct()]
    """Configs of the suite, which are its parts, in the order in which they are asked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FileEntry(Document):
    """A further file of the dataset that a program may read, such as the votes by which its items were accepted."""

    path: PathInFolder
    """Path of the file, relative to the dataset folder."""
    sha256: Sha256
    """SHA-256 of the file's bytes."""
    description: Text


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleCount(Document):
    """The number of candidates that a rule dropped, or of kept items that carry a flag."""

    rule: Name
    n: Count
    description: Text


Language: TypeAlias = Annotated[str, StringConstraints(pattern=r"^[a-z]{2,3}$")]


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest(Document):
    """The contents of a dataset folder and how it was built."""

    schema_file = "schemas/documents/dataset.schema.json"
    has_later_fields = True

    schema_version: Literal["1.0"]
    name: Name
    benchmark: Name
    """Benchmark under which results on the dataset are listed, such as synthbias or gifi."""
    version: SemanticVersion
    """Semantic version of the data, raised whenever an item changes."""
    title: Text
    builder: Text
    builder_version: Version
    parameters: dict[str, Parameter]
    seed: int | None
    sources: Annotated[tuple[Source, ...], MinLen(1)]
    generator_model: Text | None
    """Language model that wrote the candidates; None if no model did."""
    licence: Text
    redistributable: bool
    publish_refusal: Text | None
    """Reason why the dataset must not be published; None if it may be."""
    human_validated: bool
    splits: Annotated[tuple[SplitEntry, ...], MinLen(1)]
    content_sha256: Sha256
    """SHA-256 of the content hashes of all splits."""
    rejects: tuple[RuleCount, ...]
    """Number of candidates that each rule kept out of the data; each candidate is a row of rejects.parquet."""
    flags: tuple[RuleCount, ...]
    """Number of items that carry each flag. Flagged items are in the data, as the source has them."""
    suites: tuple[Suite, ...] = ()
    """Suites of configs; left out of the file if there are none."""
    files: tuple[FileEntry, ...] = ()
    """Further files with their hashes; left out of the file if there are none."""
    language: Language = "en"
    """Language of the texts, as an ISO 639 code; left out of the file for English."""
    prompt: Name | None = None
    """Prompt by which the measure of its source is defined, which is asked unless the user or the model needs another;
    left out of the file if there is none."""

    @override
    def problems(self) -> Iterator[str]:
        if self.redistributable != (self.publish_refusal is None):
            yield "publish_refusal: a dataset has either the right to be published or a reason why not; correct one"
        if self.redistributable and not all(source.redistributable for source in self.sources):
            names = ", ".join(source.name for source in self.sources if not source.redistributable)
            yield f"redistributable: true, but the licence of {names} forbids it; set false and fill in publish_refusal"
        if repeated((entry.config, entry.split) for entry in self.splits):
            yield "splits: two entries have the same config and split; keep one file for each"
        for path, n in repeated(entry.path for entry in self.files).items():
            yield f"files: '{path}' is listed {n} times; list it once"
        shapes = {entry.config: entry.item_shape for entry in self.splits}
        for name, n in Counter(suite.name for suite in self.suites).items():
            if n > 1 or name in shapes:
                yield f"suites: '{name}' is the name of another suite or config; rename it"
        for suite in self.suites:
            unknown = [config for config in suite.configs if config not in shapes]
            if unknown:
                yield f"suites: '{suite.name}' names config '{unknown[0]}', which has no splits; leave it out"
            elif len({shapes[config] for config in suite.configs}) > 1:
                yield f"suites: the configs of '{suite.name}' have items of different shapes; make one suite for each"

    @property
    def configs(self) -> tuple[str, ...]:
        """The names of the configs, in the order of the splits."""
        return tuple(dict.fromkeys(entry.config for entry in self.splits))

    @property
    def whole_names(self) -> tuple[str, ...]:
        """The names under which all items can be asked: the suites, and the configs that belong to no suite."""
        in_suites = {config for suite in self.suites for config in suite.configs}
        return (*(suite.name for suite in self.suites), *(name for name in self.configs if name not in in_suites))

    def parts(self, name: str) -> tuple[str, ...]:
        """Return the configs of a suite; none if no suite has that name."""
        return next((suite.configs for suite in self.suites if suite.name == name), ())


@dataclass(frozen=True, slots=True, kw_only=True)
class Reject(Document):
    """A candidate that a builder dropped, and the rule that dropped it."""

    schema_file = "schemas/documents/reject.schema.json"

    candidate: str
    """Text or key of the candidate; empty if the licence forbids showing it."""
    source_row: Text | None
    rule: Name
    reason: Text


MOST_CHARACTERS = 1_000_000
"""Maximum length of a text of an item: no model reads more."""
MOST_OF_NAME = 1_000
"""Maximum length of what identifies or groups items, which records and pages repeat."""
_NAMES = ("item_id", "cluster", "pair_id", "template_id", "category", "group")
MOST_OFFERED = 10_000
"""Maximum length of a label or option, which every request repeats."""


class Item(Document):
    """A row of a dataset, of any shape."""

    __slots__ = ()
    item_id: str
    """Identifier of the item, unique within its split."""
    flags: tuple[str, ...]
    """Names of the manifest's flag rules that apply to this item."""

    @property
    def unit(self) -> str:
        """The identifier of the set of items that a sample keeps together; by default, the item alone."""
        return self.item_id

    def text_problems(self) -> Iterator[str]:
        """Yield a line for each text that is too long, and for lists with texts that nobody can see or tell apart."""
        for name, most in _limits(type(self)):  # type: ignore[arg-type]  # mypy asks for the hash of an item here.
            value = getattr(self, name)
            if isinstance(value, str):
                if len(value) > most:
                    yield f"{name}: has {len(value):,} characters, more than {most:,}; shorten it"
            elif isinstance(value, tuple) and (fault := offered_fault(value)) is not None:
                yield f"{name}: {fault}"


@cache
def _limits(shape: type[Item]) -> Sequence[tuple[str, int]]:
    """Return the names of the fields of a shape, each with the maximum length of a text in it."""
    names = [field.name for field in fields(shape)]  # type: ignore[arg-type]  # Each subclass is a dataclass.
    return [(name, MOST_OF_NAME if name in _NAMES else MOST_CHARACTERS) for name in names]


@lru_cache(maxsize=256)  # Of most datasets all items have the same labels.
def offered_fault(texts: tuple[object, ...]) -> str | None:
    """Return what is wrong with texts that a model chooses among, with the remedy; None if they can be told apart."""
    first: dict[str, str] = {}
    for text in texts:
        if not isinstance(text, str):
            return None
        shown = f"'{printable(text, most=60)}'"
        if len(text) > MOST_OFFERED:
            return f"{shown} has {len(text):,} characters, more than {MOST_OFFERED:,}; shorten it"
        if (sign := invisible_sign(" ".join(text.split()))) is not None:
            return f"{shown} has the invisible sign U+{ord(sign):04X}; remove it"
        if not (looks := seen(text)):
            return f"{shown} has nothing that can be seen; write what it stands for"
        if (other := first.setdefault(looks, text)) != text and other.casefold() != text.casefold():
            return f"{shown} looks like '{printable(other, most=60)}'; spell one differently"
    return None


@dataclass(frozen=True, kw_only=True)
class ItemShape:
    """A kind of dataset row."""

    row_type: type[Item]
    """Frozen dataclass of a row."""
    unit_name: str
    """Singular noun for the set of items that a sample keeps together, such as ``minimal pair``."""
    also_called: tuple[str, ...] = ()
    """Other names of the shape in manifests; each is the name of a task that uses the shape."""
    name: str = ""
    """Name of the file without ``.py``; set when the file is loaded."""


@cache
def item_shapes() -> Mapping[str, ItemShape]:
    """Return the item shapes by every name that manifests use for them; their own names come first.

    Raises:
        ConfigError: two shapes have one name or one dataclass.
    """
    loaded = {name: _load(name) for name in SHAPES.names()}
    by_name: dict[str, ItemShape] = dict(loaded)
    for shape in loaded.values():
        for other in shape.also_called:
            if by_name.setdefault(other, shape) is not shape:
                raise ConfigError(
                    f"item shapes {by_name[other].name} and {shape.name} are both called '{other}'; rename one"
                )
    for shape in loaded.values():
        same = [other.name for other in loaded.values() if other.row_type is shape.row_type]
        if len(same) > 1:
            raise ConfigError(
                f"item shapes {' and '.join(same)} have one dataclass; give the second name in also_called"
            )
    return by_name


def _load(name: str) -> ItemShape:
    module = SHAPES.load(name)
    shape: ItemShape = SHAPES.get(name, ItemShape)
    if not issubclass(shape.row_type, Item):
        raise ConfigError(f"{module.__file__}: {shape.row_type.__name__} does not extend Item; add it")
    lacking = sorted({"item_id", "flags"} - {*getattr(shape.row_type, "__dataclass_fields__", ())})
    if lacking:
        raise ConfigError(f"{module.__file__}: {shape.row_type.__name__} is no dataclass with a {lacking[0]}; add it")
    return replace(shape, name=name)


def shape_of(listed: str, *, where: str) -> ItemShape:
    """Return the item shape with the name that a manifest gives.

    Raises:
        DataError: no shape has that name.
    """
    # Most manifests give the own name, and no other shape is loaded.
    if listed in SHAPES.names():
        return _load(listed)
    shapes = item_shapes()
    if listed not in shapes:
        raise DataError(f"{where}: item_shape '{listed}' is unknown; have: {', '.join(shapes)}; {HINT}")
    return shapes[listed]
