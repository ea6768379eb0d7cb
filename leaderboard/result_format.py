"""The interface of the formats of other projects, to which verified results are exported.

Each file or package in ``leaderboard/formats`` is a format. It holds ``FORMAT``, a
:class:`ResultFormat`. On the command line, its name is that of the file with dashes instead of underscores.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

from biasboard.ground.kinds import FORMATS
from leaderboard.verify.entries import Entry
from schemas.documents.board import Submission
from schemas.documents.dataset import Manifest
from schemas.documents.result import Metric, Result, metric_key


class Addresses(NamedTuple):
    """The web addresses that exports refer to, as far as the user gives them."""

    site: str | None
    """Address of the board; None if it is not published or not given."""
    dataset_repo: str | None
    """Id of the dataset's repository on the Hub."""
    dataset_revision: str | None
    """Commit of that repository with the version of the dataset that was asked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifiedResult:
    """A verified result, with everything that exports need."""

    entry: Entry
    folder: Path
    """Folder of the result."""
    result_sha256: str
    """SHA-256 of the bytes of ``result.json``."""
    page: str
    """Page of the result, relative to the root of the board's site."""
    dataset_sha256: str
    """SHA-256 of the contents of the dataset, as the answer key has it."""
    manifest: Manifest | None
    """Manifest of the dataset; None if the dataset is not on this machine."""
    submission: Submission | None
    """Statement of the submitter; None if there is none."""
    withheld: str | None
    """Reason why no text of an item or an answer may be exported; None if texts may."""

    @property
    def result(self) -> Result:
        """The result itself."""
        return self.entry.result

    @property
    def metrics(self) -> tuple[Metric, ...]:
        """All metrics of the current code, with the values of the result where it has them.

        Both agree, but computed values may differ in the last digits between machines, and exports must not. Reasons
        are those of the current code, because those in a result may be any words.
        """
        stored = {(metric_key(metric), metric.version): metric for metric in self.result.metrics}
        return tuple(
            computed if same is None else replace(computed, value=same.value, interval=same.interval)
            for key, computed in self.entry.metrics.items()
            for same in [stored.get((key, computed.version))]
        )

    def metric(self, name: str) -> Metric | None:
        """Return a metric on all items; None if the task has no such metric."""
        return next((metric for metric in self.metrics if metric.name == name and not metric.group), None)

    def permalink(self, addresses: Addresses) -> str | None:
        """Return the address of the result on the board; None if the address of the board is unknown."""
        return None if addresses.site is None else f"{addresses.site.rstrip('/')}/{self.page}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultFormat:
    """A format in which results are exported."""

    write: Callable[[Sequence[VerifiedResult], Addresses, Path], Iterator[Path]]
    """Function that writes results below a folder and yields the path of each file, none of them of a result that is
    refused. The same results give the same bytes at any time and on any machine. It raises DataError if the files of a
    result changed since it was verified."""
    refused: Callable[[Sequence[VerifiedResult]], Mapping[Path, str]] = lambda results: {}
    """Function that returns the reason for each result that the format cannot represent truthfully, by its folder."""
    why_dataset_repo: str | None = None
    """Why the repository of the dataset on the Hub has to be named; None if it need not be."""


def load_format(name: str) -> ResultFormat:
    """Return the format of a name.

    Raises:
        ConfigError: there is no such format.
    """
    found: ResultFormat = FORMATS.get(name, ResultFormat)
    return found
