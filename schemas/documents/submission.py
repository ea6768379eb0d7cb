"""The contents of ``submission.json``: who hands in a result, when, and what is known about the model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Final, Literal

from pydantic import StringConstraints

from schemas.documents.base import Day, Document, Sha256

SCHEMA_VERSION: Final = "1.0"


@dataclass(frozen=True, slots=True, kw_only=True)
class Submission(Document):
    """The statement of a submitter about one result, which lies beside it."""

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
