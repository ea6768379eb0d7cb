"""The lines of Python on the page, which apply a file of rules without this package."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from evaluators.calibration.reweighting.estimator import Reweighter
from tests.evaluators.reweighting.made import biased, tied

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")


@pytest.fixture(scope="module")
def shown(repository: Path) -> str:
    page = (repository / "site" / "docs" / "reweighting.md").read_text(encoding="utf-8")
    section = page.partition("## Without this package")[2].partition("\n## ")[0]
    (code,) = re.findall(r"^```python\n(.*?)^```", section, flags=re.MULTILINE | re.DOTALL)
    return str(code)


@pytest.fixture(scope="module")
def predict(shown: str) -> Callable[[Path, Any], Iterable[str]]:
    names: dict[str, Any] = {}
    exec(shown, names)
    found: Callable[[Path, Any], Iterable[str]] = names["predict"]
    return found


@pytest.mark.parametrize("preset", ["default", "balanced", pytest.param("paper", marks=pytest.mark.slow)])
def test_the_lines_on_the_page_predict_like_the_package(
    predict: Callable[[Path, Any], Iterable[str]], tmp_path: Path, preset: str
) -> None:
    made = biased(3, 60, 4)
    names = np.array(["un", "deux", "trois", "quatre"])
    fitted = Reweighter(preset, classes=names.tolist()).fit(made.probabilities, names[made.targets])
    fitted.save(tmp_path / "rules.json")
    loaded = Reweighter.load(tmp_path / "rules.json")
    even = tied(1, 300, 4).probabilities
    for rows in (biased(4, 500, 4).probabilities, even, even * 7, np.round(made.probabilities, 6)):
        expected = loaded.predict(rows).tolist()
        assert list(predict(tmp_path / "rules.json", rows.tolist())) == expected
        assert expected == fitted.predict(rows).tolist()


def test_rows_that_no_function_reaches_decide_themselves(
    predict: Callable[[Path, Any], Iterable[str]], tmp_path: Path
) -> None:
    path = tmp_path / "rules.json"
    Reweighter().fit(*biased(3, 60, 3)).save(path)
    document = json.loads(path.read_text()) | {"map": "full"}
    path.write_text(json.dumps(document | {"rules": [16, 16, 16], "weights": [None, None, None]}))
    rows = [[0.4, 0.4, 0.2], [0.1, 0.4, 0.5], [0.04, 0.0, 0.96]]
    assert list(predict(path, rows)) == ["0", "2", "2"]
    assert Reweighter.load(path).predict(rows).tolist() == [0, 2, 2]


def test_the_lines_need_nothing_but_numpy(shown: str, tmp_path: Path) -> None:
    Reweighter().fit(*biased(3, 120, 3)).save(tmp_path / "rules.json")
    program = f"{shown}\nprint(*predict({str(tmp_path / 'rules.json')!r}, [[0.9, 0.05, 0.05]]))\nimport sys\n"
    program += (
        "print({name.partition('.')[0] for name in sys.modules} & {'evaluators', 'schemas', 'sklearn', 'pandas'})"
    )
    done = subprocess.run(
        [sys.executable, "-I", "-c", program],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
        cwd=tmp_path,
    )
    predicted, loaded = done.stdout.splitlines()
    assert predicted in ("0", "1", "2")
    assert loaded == "set()"
