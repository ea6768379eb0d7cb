"""Documents in folders of ours that hold anything but what they should: registers, manifests, results and adapters."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from biasboard.ground.strict_json import JsonValue
from schemas.documents.dataset import Manifest
from schemas.files import contract
from schemas.items.own_question import OwnQuestion
from tests.commands import REPOSITORY
from tests.hostile.inputs import NO_FILES, NO_JSON, NO_TEXTS, Make, holding
from tests.hostile.runner import Row, ended, rows

DAMAGED = {name: make for name, make in (NO_FILES | NO_TEXTS | NO_JSON).items() if name != "missing"}
RESULT = next((REPOSITORY / "leaderboard/results/synthbias@4.0.0").glob("*/type1-intrinsic-v1-*"))


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
ENTRY: dict[str, JsonValue] = {"config": "a", "split": "test", "item_shape": "label", "n_items": 1}
RUN = ["run", "--dataset", "INPUT", "--backend", "baseline", "--model", "uniform"]
# Every document is read by one reader, which all damages meet in one command; the others show that they use it.
SOME = {name: (DAMAGED | REGISTER)[name] for name in ("a pipe", "cut off", "a list of entries")}
TABLE: dict[str, Row] = {
    **rows(["validate", "INPUT/register.json"], inside(None, "register.json", DAMAGED | REGISTER)),
    **rows(["accept", "a", "--results", "INPUT"], inside(None, "register.json", SOME)),
    **rows(["accept", ".", "--results", "INPUT"], inside(RESULT, "result.json", SOME)),
    **rows(["board", "--results", "INPUT", "--out", "OUT"], inside(None, "register.json", SOME)),
    **rows(["rescore", "INPUT"], inside(RESULT, "result.json", SOME)),
    **rows(["rescore", "INPUT"], inside(RESULT, "records.parquet", DAMAGED)),
    **rows(["reweight", "evaluate", "INPUT"], inside(RESULT, "records.parquet", SOME)),
    **rows(["validate", "INPUT/adapters.json"], inside(None, "adapters.json", SOME)),
    **rows(RUN, inside(None, "dataset.json", SOME)),
    **rows(
        RUN,
        inside(None, "dataset.json", {"of 20 MB": holding(b"{" + b" " * 20_000_000)}),
        says="has 20,000,001 bytes, more than the 16,777,216 that are read",
    ),
    **rows(["keys", "INPUT", "--out", "OUT"], inside(None, "dataset.json", SOME)),
    **rows(["publish", "INPUT", "--repo", "a/b", "--dry-run"], inside(None, "dataset.json", SOME)),
}


@pytest.mark.parametrize("name", TABLE)
def test_a_damaged_document_ends_in_one_line(name: str, tmp_path: Path) -> None:
    ended(TABLE[name], tmp_path)


def test_a_split_names_one_file_of_its_folder() -> None:
    def told(named: str) -> bool:
        lines = contract.converted({"splits": [{**ENTRY, "content_sha256": "0" * 64, "path": named}]}, Manifest)[1]
        return any(line.startswith("splits[0].path: ") for line in lines)

    for path in ("*/b", "../b", "a/?", "[a]/b", "a/\u202eb"):
        assert told(f"data/{path}.parquet")
    assert not told("data/a-b/test.1.parquet")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("x", "\u2800"), "has nothing that can be seen"),
        (("x", "y\u202e"), "has the invisible sign U+202E; remove it"),
        (("x", "x\u200d"), "looks like 'x'; spell one differently"),
        (("x", "y" * 20_000), "has 20,000 characters, more than 10,000; shorten it"),
        (("X", "x"), None),
        (("yes\n", "no"), None),
    ],
)
def test_what_is_offered_can_be_seen_and_told_apart(options: tuple[str, ...], said: str | None) -> None:
    roles = ("answer", "stereotyped", "antistereotyped", "neutral")
    empty = ("context", *roles, "category", "group", "condition", "source_row")
    of_all = dict.fromkeys(empty)
    item = OwnQuestion(item_id="a", question="Who?", options=options, cluster="a", flags=(), **of_all)
    found = [*contract.problems_of(item)]
    assert (found == []) if said is None else (len(found) == 1 and said in found[0])
    (line,) = contract.problems_of(replace(item, options=("x", "y"), question="x" * 1_000_001))
    assert line == "question: has 1,000,001 characters, more than 1,000,000; shorten it"
