"""Exports results as Every Eval Ever, the common schema of the EvalEval coalition (schema 0.3.0).

A result becomes ``data/<benchmark>/<developer>/<model>/<uuid>.json`` and, if its items have right answers,
``<uuid>_samples.jsonl`` next to it, as the package ``every-eval-ever`` on PyPI requires. Three things do not fit:

* A score must be a number. Metrics without a value are therefore listed with their reasons in the details of the
  source, and are no results.
* Every metric must say whether lower is better. Where the ideal value is neither end of the range, the field is false
  and ``direction`` in the details of the metric gives it.
* A row must say whether its answer is correct. Records without a verdict have no row, and are counted.

*aggregate* writes the document, *samples* the rows, and *identity* the names that both use.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from biasboard.ground import strict_json
from biasboard.ground.files import replacing
from leaderboard.formats.every_eval_ever.aggregate import evaluation_log
from leaderboard.formats.every_eval_ever.identity import identity_of
from leaderboard.formats.every_eval_ever.samples import write_samples
from leaderboard.result_format import Addresses, VerifiedResult


@dataclass(frozen=True)
class EveryEvalEver:
    """The schema of the EvalEval coalition."""

    name: str = "every-eval-ever"

    def check(self, addresses: Addresses) -> None:
        """Accept any addresses: the schema needs none."""

    def refused(self, results: Sequence[VerifiedResult]) -> Mapping[Path, str]:
        """Return nothing: details of the schema can say everything about a result."""
        return {}

    def write(self, results: Sequence[VerifiedResult], addresses: Addresses, out: Path) -> Iterator[Path]:
        """Write two files for each result, the second one only if there are verdicts about answers."""
        for one in results:
            identity = identity_of(one)
            path, samples_path = out / f"{identity.stem}.json", out / f"{identity.stem}_samples.jsonl"
            with replacing(samples_path) as temporary:
                samples = write_samples(one, identity, temporary)
            if not samples.n_rows:
                # The validator refuses rows that the other file does not name.
                samples_path.unlink()
            strict_json.write(path, evaluation_log(one, addresses, identity, samples))
            yield path
            if samples.n_rows:
                yield samples_path


FORMAT = EveryEvalEver()
