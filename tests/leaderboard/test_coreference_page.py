"""The figures that the page "Gender and occupation" states, from the formula it gives."""

from __future__ import annotations

import math
import re
from pathlib import Path

PAGE = Path(__file__).parents[2] / "site" / "docs" / "coreference.md"


def ucerf_of_flip(probability: float) -> float:
    """UCerF of a pair in which one side gives the right answer this probability, the other side the rest."""
    values = []
    for right in (probability, 1 - probability):
        entropy = -sum(p * math.log(p) for p in (right, 1 - right) if p > 0)
        certainty = 2 - math.exp(entropy)
        values.append(certainty if right > 0.5 else -certainty)
    return 1 - abs(values[0] - values[1]) / 2


def test_stated_values_of_the_baselines_follow_from_the_formula() -> None:
    stated = dict(
        re.findall(r"^\| (stereotype[-.\d]*) \| .* \| (?:about )?([\d.]+) \|$", PAGE.read_text("utf-8"), re.MULTILINE)
    )
    assert stated.keys() == {"stereotype", "stereotype-0.7", "stereotype-0.55"}
    for name, value in stated.items():
        probability = float(name.partition("-")[2] or 1)
        assert round(ucerf_of_flip(probability), 3) == float(value), name
