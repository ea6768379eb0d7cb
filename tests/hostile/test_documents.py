"""Documents in folders of ours that hold anything but what they should: registers, manifests, results and adapters."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.commands import REPOSITORY
from tests.hostile.inputs import NO_FILES, NO_JSON, NO_TEXTS, Make, holding
from tests.hostile.runner import Row, ended, rows

DAMAGED = {name: make for name, make in (NO_FILES | NO_TEXTS | NO_JSON).items() if name != "missing"}
RESULT = next((REPOSITORY / "leaderboard/results/synthbias@3.0.0").glob("*/type1-intrinsic-v1-*"))


def inside(folder: Path | None, name: str, documents: Mapping[str, Make]) -> dict[str, Make]:
    """Make a folder, a copy of another one if it is given, in which one document is damaged."""

    def of(make: Make) -> Make:
        def made(path: Path) -> None:
            if folder is None:
                path.mkdir()
            else:
                shutil.copytree(folder, path)
            (path / name).unlink(missing_ok=True)
            make(path / name)

        return made

    return {f"{name}: {damage}": of(make) for damage, make in documents.items()}


REGISTER = {
    "a list of entries": holding('{"schema_version": "1.0", "entries": [1]}'),
    "an unknown field": holding('{"schema_version": "1.0", "entries": [], "owners": {}, "more": 1}'),
    "another version": holding('{"schema_version": "99.0"}'),
    "a version of 5,000 digits": holding(f'{{"schema_version": "{"9" * 5_000}"}}'),
}
TABLE: dict[str, Row] = {
    **rows(["accept", "a", "--results", "INPUT"], inside(None, "register.json", DAMAGED | REGISTER)),
    **rows(["accept", ".", "--results", "INPUT"], inside(RESULT, "result.json", DAMAGED | REGISTER)),
    **rows(["board", "--results", "INPUT", "--out", "OUT"], inside(None, "register.json", DAMAGED | REGISTER)),
    **rows(["rescore", "INPUT"], inside(RESULT, "result.json", DAMAGED | REGISTER)),
    **rows(["rescore", "INPUT"], inside(RESULT, "records.parquet", DAMAGED)),
    **rows(["reweight", "evaluate", "INPUT"], inside(RESULT, "records.parquet", DAMAGED)),
    **rows(["texts", "INPUT", "--out", "OUT"], inside(RESULT, "result.json", DAMAGED)),
    **rows(["index", "INPUT"], inside(RESULT, "result.json", DAMAGED)),
    **rows(["validate", "INPUT/adapters.json"], inside(None, "adapters.json", DAMAGED | REGISTER)),
    **rows(["validate", "INPUT/register.json"], inside(None, "register.json", DAMAGED | REGISTER)),
    **rows(["queue", "next", "--queue", "INPUT"], inside(None, "a.json", DAMAGED | REGISTER)),
    **rows(
        ["run", "--dataset", "INPUT", "--backend", "baseline", "--model", "uniform"],
        inside(None, "dataset.json", DAMAGED | REGISTER),
    ),
    **rows(["keys", "INPUT", "--out", "OUT"], inside(None, "dataset.json", DAMAGED)),
    **rows(["publish", "INPUT", "--repo", "a/b", "--dry-run"], inside(None, "dataset.json", DAMAGED)),
}


@pytest.mark.parametrize("name", TABLE)
def test_a_damaged_document_ends_in_one_line(name: str, tmp_path: Path) -> None:
    ended(TABLE[name], tmp_path)
