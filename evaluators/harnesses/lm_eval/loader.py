"""Gives lm-evaluation-harness the questions that lie beside this file.

It is copied into every exported folder, so that the folder can be moved, and imports nothing of biasboard.
"""

import hashlib
import json
from pathlib import Path
from typing import Any


def load(*, biasboard: dict[str, Any], **others: Any) -> dict[str, Any]:
    """Return the questions of a task as its only split.

    Args:
        biasboard: The facts of the export, which name the file of questions and its hash.
        others: Further metadata of the task, which is not needed.

    Raises:
        ValueError: the file is not the one that was exported.
    """
    # Imported here, where the harness needs it: whoever writes the folder does not.
    import datasets

    path = Path(__file__).with_name(biasboard["file"])
    content = path.read_bytes()
    if hashlib.sha256(content).hexdigest() != biasboard["file_sha256"]:
        raise ValueError(f"{path}: was changed after the export; export the folder again")
    texts = datasets.Value("string")
    features = datasets.Features(
        {
            "id": texts,
            "context": texts,
            "options": datasets.List(texts),
            "target": datasets.Value("int64"),
            "request_sha256": texts,
        }
    )
    rows = [json.loads(line) for line in content.decode("ascii").splitlines()]
    return {"test": datasets.Dataset.from_list(rows, features=features)}
