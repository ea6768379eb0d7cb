"""The charts of reweight: what they show, and that they fit few and many classes."""

from __future__ import annotations

import re
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from tests.evaluators.commands.made_shares import NAMES, error, made, said, write_csv


def texts(path: Path) -> list[str]:
    return re.findall(r">([^<>]+)</text>", path.read_text(encoding="utf-8"))


@pytest.mark.slow
def test_a_fit_draws_classes_and_lorenz_curves(tmp_path: Path) -> None:
    path = write_csv(tmp_path / "shares.csv", made())
    told = said("fit", path, "--out", tmp_path / "rules.json", "--plots", tmp_path / "plots")
    assert [line for line in told.splitlines() if line.startswith("chart ")] == [
        f"chart {tmp_path / 'plots' / name}" for name in ("classes.svg", "lorenz.svg")
    ]
    shown = texts(tmp_path / "plots" / "classes.svg")
    assert {*NAMES, "before", "after", "fitted on shares.csv"} <= {*shown}
    found = re.search(r"Gini index (0\.\d{4}) to (0\.\d{4})", told)
    assert found is not None
    before, after = (float(one) for one in found.groups())
    curves = texts(tmp_path / "plots" / "lorenz.svg")
    assert {f"before: Gini index {before:.3f}", f"after: Gini index {after:.3f}"} <= {*curves}


@pytest.mark.slow
def test_many_classes_with_long_names_have_a_row_each_within_the_picture(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    n_classes = 100
    targets = np.repeat(np.arange(n_classes), 3)
    names = [f"the name of a class that is much too long for a chart {number}" for number in range(n_classes)]
    shares = rng.dirichlet(np.ones(n_classes), len(targets))
    np.savez(tmp_path / "many.npz", probabilities=shares, labels=[names[one] for one in targets], classes=names)
    told = said("evaluate", tmp_path / "many.npz", "--plots", tmp_path / "plots")
    assert "100 classes; --format json prints all of them" in told
    picture = (tmp_path / "plots" / "classes.svg").read_text(encoding="utf-8")
    labels = {text: float(y) for y, text in re.findall(r'<text[^>]* y="([\d.]+)"[^>]*>([^<]*…[^<]*)', picture)}
    assert len(labels) == n_classes
    heights = sorted(labels.values())
    assert min(high - low for low, high in pairwise(heights)) >= 12


def test_predictions_that_are_all_wrong_are_drawn_without_a_curve(tmp_path: Path) -> None:
    path = tmp_path / "wrong.csv"
    path.write_text("a,b,label\n0.1,0.9,a\n0.9,0.1,b\n", encoding="utf-8")
    told = said("evaluate", path, "--plots", tmp_path / "plots")
    assert "without a value: Gini index (nothing is right" in told
    assert "before: Gini index undefined" in texts(tmp_path / "plots" / "lorenz.svg")


def test_a_file_in_the_place_of_the_folder_is_refused(tmp_path: Path) -> None:
    path = write_csv(tmp_path / "shares.csv", made())
    assert f"--plots {path}: is a file; name a folder" in error("evaluate", path, "--plots", path)
