"""Files that are none, or hold anything but what a command reads, for every command that takes one."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.hostile.inputs import NO_CSV, NO_FILES, NO_JSON, NO_PARQUET, NO_TEXTS, Make
from tests.hostile.runner import Row, ended, rows

BASELINE = ["--backend", "baseline", "--model", "uniform", "--out", "OUT"]
ANY = (NO_FILES, NO_TEXTS)
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


IMPORT = ["import", "lm-eval", "--model", "lab/x", "--input", "INPUT", *OUT]
TABLE: dict[str, Row] = {
    **rows(build("synthbias", "synthbias"), *ANY, NO_CSV),
    **rows(build("synthbias", "winobias"), *ANY),
    **rows(build("gifi", "tango"), *ANY, NO_CSV),
    **rows(build("gifi", "realtoxicityprompts"), *ANY, NO_JSON),
    **rows(build("gifi", "gsm8k"), *ANY, NO_JSON),
    **rows(build("gifi", "gifi"), *ANY),
    **rows(build("superni", "natural-instructions"), *ANY),
    **rows(build("image_labels"), *ANY),
    **rows(build("image_labels", "hub"), *ANY),
    **rows(["run", "--dataset", "INPUT", *BASELINE], *ANY),
    **rows(["finetune", "--model", "x", "--dataset", "INPUT", *OUT], *ANY),
    **rows(["rescore", "INPUT"], *ANY),
    **rows(["reweight", "evaluate", "INPUT"], *ANY, NO_JSON, NO_CSV),
    **rows(["reweight", "fit", "INPUT", *OUT], *ANY, NO_JSON, NO_CSV),
    **rows(["reweight", "apply", "INPUT", "--rules", "INPUT", *OUT], *ANY, NO_JSON, NO_CSV),
    **rows(["questions", "lm-eval", "INPUT", *OUT], *ANY),
    **rows(["card", "INPUT", *OUT], *ANY),
    **rows(["publish", "INPUT", "--repo", "a/b", "--dry-run"], *ANY),
    **rows(["keys", "INPUT", *OUT], *ANY),
    **rows(["ranks", "INPUT"], *ANY, NO_JSON, NO_CSV),
    **rows(["verify", "INPUT"], *ANY),
    **rows(["submit", "INPUT", "--contact", "me", "--model-card", "https://example.org", "--results", "OUT"], *ANY),
    **rows(["accept", "INPUT", "--results", "OUT"], *ANY),
    **rows(["export", "every-eval-ever", "INPUT", *OUT], *ANY),
    **rows(["validate", "INPUT"], *ANY, NO_JSON),
    **rows(IMPORT, *ANY, NO_JSON),
    **rows(build("labelled_text"), NO_PARQUET, named="a.parquet"),
    **rows(build("own_questions"), NO_PARQUET, named="b.parquet"),
    **rows(build("gifi", "gsm8k"), NO_PARQUET, named="test.parquet"),
    **rows(build("image_labels", "hub"), {name: as_cifar(make) for name, make in NO_PARQUET.items()}),
    **rows(["ranks", "INPUT"], NO_PARQUET, named="scores.parquet"),
    **rows(["reweight", "evaluate", "INPUT"], NO_PARQUET, named="shares.parquet"),
}


@pytest.mark.parametrize("name", TABLE)
def test_a_file_of_another_kind_ends_in_one_line(name: str, tmp_path: Path) -> None:
    ended(TABLE[name], tmp_path)
