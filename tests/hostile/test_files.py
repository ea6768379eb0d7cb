"""Files that are none, or hold anything but what a command reads, for every command that takes one."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.hostile.inputs import NO_CSV, NO_FILES, NO_JSON, NO_PARQUET, NO_TEXTS, Make
from tests.hostile.runner import Row, ended, rows

BASELINE = ["--backend", "baseline", "--model", "uniform", "--out", "OUT"]
ALL = (NO_FILES, NO_TEXTS)
SOME = {
    **{name: NO_FILES[name] for name in ("missing", "a folder", "a pipe")},
    "random bytes": NO_TEXTS["random bytes"],
}
"""What shows that a command opens its file by the one function that refuses all the others too."""
BOMB = {name: NO_PARQUET[name] for name in ("a text in 1,000,000 rows",)}
OUT = ["--out", "OUT"]


def build(builder: str, *source: str) -> list[str]:
    return ["build", builder, *(f"--source={name}" for name in source), "--input", "INPUT", *OUT]


def as_cifar(make: Make) -> Make:
    """Return what makes a folder in the layout of CIFAR-100 with such a file."""

    def folder(path: Path) -> None:
        for part in ("train", "test"):
            make_at = path / "cifar100" / f"{part}-00000-of-00001.parquet"
            make_at.parent.mkdir(parents=True, exist_ok=True)
            make(make_at)

    return folder


SOURCES = [
    *(("synthbias", name) for name in ("synthbias", "winobias")),
    *(("gifi", name) for name in ("tango", "realtoxicityprompts", "gsm8k", "gifi")),
    *(("superni", "natural-instructions"), ("image_labels",), ("image_labels", "hub")),
]
TABLE: dict[str, Row] = {
    **rows(["validate", "INPUT"], *ALL, NO_JSON),
    **rows(["reweight", "evaluate", "INPUT"], SOME, NO_JSON, NO_CSV, BOMB, named="shares.parquet"),
    **rows(build("labelled_text"), NO_PARQUET, named="a.parquet"),
    **rows(build("own_questions"), BOMB, named="b.parquet"),
    **rows(build("gifi", "gsm8k"), BOMB, named="test.parquet"),
    **rows(build("image_labels", "hub"), {name: as_cifar(make) for name, make in NO_PARQUET.items()}),
    **rows(["ranks", "INPUT"], SOME, BOMB, named="scores.parquet"),
    **{name: row for source in SOURCES for name, row in rows(build(*source), SOME).items()},
    **rows(["run", "--dataset", "INPUT", *BASELINE], SOME),
    **rows(["finetune", "--model", "x", "--dataset", "INPUT", *OUT], SOME),
    **rows(["rescore", "INPUT"], SOME),
    **rows(["reweight", "fit", "INPUT", *OUT], SOME),
    **rows(["reweight", "apply", "INPUT", "--rules", "INPUT", *OUT], SOME),
    **rows(["questions", "lm-eval", "INPUT", *OUT], SOME),
    **rows(["card", "INPUT", *OUT], SOME),
    **rows(["publish", "INPUT", "--repo", "a/b", "--dry-run"], SOME),
    **rows(["keys", "INPUT", *OUT], SOME),
    **rows(["verify", "INPUT"], SOME),
    **rows(["submit", "INPUT", "--contact", "me", "--model-card", "https://example.org", "--results", "OUT"], SOME),
    **rows(["accept", "INPUT", "--results", "OUT"], SOME),
    **rows(["export", "every-eval-ever", "INPUT", *OUT], SOME),
    **rows(["import", "lm-eval", "--model", "lab/x", "--input", "INPUT", *OUT], SOME),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", TABLE)
def test_a_file_of_another_kind_ends_in_one_line(name: str, tmp_path: Path) -> None:
    ended(TABLE[name], tmp_path)
