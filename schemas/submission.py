"""The contents of ``submission.json``: who hands in a result, when, and what is known about the model."""

from __future__ import annotations

from dataclasses import dataclass

SCHEMA_VERSION = "1.0"


@dataclass(frozen=True, slots=True, kw_only=True)
class Submission:
    """The statement of a submitter about one result, which lies beside it."""

    schema_version: str
    contact: str
    """Address or account at which the submitter answers questions."""
    model_card: str
    """Https address of a description of the model."""
    train_data_disclosure: str | None
    """Statement on whether the model was trained on items of the benchmark; None if the submitter says nothing."""
    run_date: str
    """Date on which the records were written."""
    submitted: str
    """Date of the submission."""
    biasboard: str
    """Version of biasboard that made the submission."""
    result_sha256: str
    """SHA-256 of the bytes of ``result.json``, which names the hashes of the other files."""
