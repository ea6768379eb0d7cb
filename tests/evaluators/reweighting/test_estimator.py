"""The estimator: scikit-learn's checks, names of classes, files of rules, what is refused, and doubts about a fit."""

from __future__ import annotations

import json
import math
import pickle
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.utils.estimator_checks import parametrize_with_checks

from biasboard.ground.errors import DataError
from evaluators.calibration.reweighting.estimator import Reweighter
from evaluators.calibration.reweighting.fitting import PRESETS, FitSettings, document_of, fit_rules
from evaluators.calibration.reweighting.problem import Annealing
from evaluators.calibration.reweighting.rules import rules_of, write_rules
from tests.evaluators.reweighting import oracle
from tests.evaluators.reweighting.made import Made, biased, tied

# The doubts of fits have tests of their own; most data here are small.
pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")
EXPECTED_TO_FAIL = dict.fromkeys(
    (
        *("check_classifiers_classes", "check_dtype_object", "check_estimators_dtypes", "check_estimators_nan_inf"),
        *("check_estimators_fit_returns_self", "check_estimators_overwrite_params", "check_estimators_pickle"),
        *("check_n_features_in_after_fitting", "check_pipeline_consistency", "check_readonly_memmap_input"),
    ),
    "the data of the check have another number of columns than classes",
) | {"check_classifiers_train": "the data of the check are features, not probabilities, and wants them learned"}


@parametrize_with_checks([Reweighter()], expected_failed_checks=lambda _: EXPECTED_TO_FAIL, xfail_strict=True)  # type: ignore[untyped-decorator]
def test_scikit_learns_checks_pass(estimator: Any, check: Any) -> None:
    if check.func.__name__ == "check_array_api_input":
        return  # It skips itself unless a variable was set before scipy was imported.
    check(estimator)


@pytest.mark.parametrize("names", [["c", "a", "b"], [10, 2, 33], [1.0, 0.0, 2.0], ["10", "9", "8"], [False, True]])
def test_a_file_predicts_like_the_estimator_that_wrote_it(tmp_path: Path, names: Any) -> None:
    made, classes = biased(1, 60, len(names), skew=0.5), np.array(names)
    fitted = Reweighter("balanced", classes=names).fit(made.probabilities, classes[made.targets])
    fitted.save(tmp_path / "rules.json")
    loaded = Reweighter.load(tmp_path / "rules.json")
    fresh = biased(2, 500, len(names)).probabilities
    expected = classes[oracle.weighted(fresh.tolist(), rules_of(fitted.rules_).weights.tolist())].tolist()
    assert fitted.predict(fresh).tolist() == loaded.predict(fresh).tolist() == expected
    assert pickle.loads(pickle.dumps(fitted)).predict(fresh).tolist() == expected
    np.testing.assert_array_equal(fitted.predict_proba(fresh), loaded.predict_proba(fresh))
    assert fitted.classes_.tolist() == loaded.classes_.tolist() == classes.tolist()
    assert loaded.rules_ == fitted.rules_
    loaded.save(tmp_path / "again.json")
    assert (tmp_path / "again.json").read_bytes() == (tmp_path / "rules.json").read_bytes()
    with pytest.raises(NotFittedError):
        clone(fitted).predict(fresh)


def test_classes_name_columns_in_their_order_and_may_have_no_rows(tmp_path: Path) -> None:
    made = biased(4, 200, 3)
    names = np.array(["z", "a", "m"])
    told = Reweighter(classes=["z", "a", "m"]).fit(made.probabilities, names[made.targets])
    order = np.argsort(names)
    plain = Reweighter().fit(made.probabilities[:, order], names[made.targets])
    assert plain.classes_.tolist() == ["a", "m", "z"]
    assert told.predict(made.probabilities).tolist() == plain.predict(made.probabilities[:, order]).tolist()
    wider = np.column_stack([made.probabilities[:, :1], np.full(200, 1e-3), made.probabilities[:, 1:]])
    fitted = Reweighter(classes=list("abcd")).fit(wider, np.array(["a", "c", "d"])[made.targets])
    assert fitted.fit_.report.supports[1] == 0
    fitted.save(tmp_path / "rules.json")
    assert json.loads((tmp_path / "rules.json").read_text())["fit_report"]["class_accuracies_after"][1] is None
    assert Reweighter.load(tmp_path / "rules.json").predict(wider).tolist() == fitted.predict(wider).tolist()


def test_the_rules_of_the_paper_are_stored_and_each_row_is_predicted_by_itself(tmp_path: Path) -> None:
    made = biased(6, 200, 3)
    settings = replace(PRESETS["paper"], annealing=Annealing(moves_per_level=20, n_restarts=1), seed=3)
    write_rules(tmp_path / "rules.json", document_of(fit_rules(*made, settings), settings, range(3)))
    fitted = Reweighter.load(tmp_path / "rules.json")
    document = fitted.rules_
    assert (document.map, document.grid, document.n_weights) == ("full", "linear", 30)
    assert (document.objective, document.seed, settings.has_floor) == ("gini", 3, False)
    rules = [0 if rule is None else rule for rule in document.rules]
    expected = [oracle.predict(row, rules, oracle.weights(30)) for row in made.probabilities.tolist()]
    assert fitted.predict(made.probabilities).tolist() == expected
    assert rules_of(document).has_functions
    # Sums differ from 1 by the rounding of six decimals; one row is no distribution at all.
    rows = np.round(made.probabilities, 6)
    beside = fitted.predict_proba(np.vstack([rows, [[7.0, 1.0, 2.0]]]))
    np.testing.assert_array_equal(beside[:-1], fitted.predict_proba(rows))
    np.testing.assert_allclose(beside[-1], fitted.predict_proba([[0.7, 0.1, 0.2]])[0])


def test_a_file_that_says_nonsense_is_refused(tmp_path: Path) -> None:
    made, path = biased(1, 150, 3), tmp_path / "rules.json"
    Reweighter("balanced").fit(made.probabilities, np.array(list("abc"))[made.targets]).save(path)
    sound = json.loads(path.read_text())
    changes: tuple[tuple[dict[str, Any], str], ...] = (
        ({"weights": [1.0, None, 0.5]}, "weights.1: null, and rules.1 is null too"),
        ({"weights": [1.0, 0.5]}, "weights: has 2 entries, and there are 3 classes"),
        ({"rules": [None, None, 99], "weights": [1.0, 0.5, None]}, "rules.2 is 99, no membership function"),
        ({"rules": [None, None, 3]}, "rules.2 is 3, a membership function"),
        ({"classes": ["a", "a", "b"]}, "3 columns have 2 names"),
        ({"format": 2}, "format"),
        ({"map": "weights", "rules": [None, None, 3], "weights": [1.0, 0.5, None]}, "map"),
        ({"has_integer_classes": True, "classes": ["1", "x", "2"]}, "has_integer_classes"),
        ({}, r"rules\.json"),
    )
    for change, said in changes:
        path.write_text(json.dumps(sound | change) if change else "")
        with pytest.raises(DataError, match=said):
            Reweighter.load(path)
    path.unlink()
    with pytest.raises(DataError, match="no such file; fit rules first"):
        Reweighter.load(path)
    with pytest.raises(NotFittedError):
        Reweighter().save(path)


@pytest.mark.parametrize(
    "change",
    [{"solver": "equalise"}, {"map": "membership", "rules": [17, 17, 17], "weights": [None, None, None]}],
)
def test_rules_of_earlier_versions_still_predict(tmp_path: Path, change: dict[str, Any]) -> None:
    made, path = biased(1, 120, 3), tmp_path / "rules.json"
    Reweighter("balanced").fit(*made).save(path)
    document = json.loads(path.read_text(encoding="utf-8")) | change
    path.write_text(json.dumps(document), encoding="utf-8")
    loaded = Reweighter.load(path)
    weights = [1.0 if weight is None else weight for weight in document["weights"]]
    assert loaded.predict(made.probabilities).tolist() == oracle.weighted(made.probabilities.tolist(), weights)


P = [[0.9, 0.1], [0.8, 0.2], [0.3, 0.7]]
Y = ["a", "b", "b"]


@pytest.mark.parametrize(
    ("probabilities", "said"),
    [
        ([[0.9, 0.1], [0.8, math.nan], [0.3, 0.7]], "contains NaN"),
        ([[0.9, 0.1], [0.8, 0.2], [0.3, -0.7]], "Negative values in data"),
        ([[0.9, 0.1], [0.0, 0.0], [0.3, 0.7]], "row 1 has nothing but zeros"),
        ([[0.9], [0.8], [0.3]], "while a minimum of 2 is required"),
        ([[0.5, 0.3, 0.2]] * 3, "3 columns, and 2 classes occur; name each column by 'classes'|has 3 features"),
    ],
)
def test_bad_probabilities_are_refused(probabilities: Any, said: str) -> None:
    for asked in (lambda: Reweighter().fit(probabilities, Y), lambda: Reweighter().fit(P, Y).predict(probabilities)):
        with pytest.raises(ValueError, match=said):
            asked()


@pytest.mark.parametrize(
    ("choices", "targets", "said"),
    [
        ({}, ["a", "a", "a"], "all rows are of one class, 'a'; give rows of at least two classes"),
        ({}, [0.5, 1.0, 1.0], "Unknown label type: continuous"),
        ({"classes": ["a", "b"]}, ["a", "b", "c"], "class 'c' is no column; have: 'a', 'b'"),
        ({"classes": ["a", "a"]}, Y, r"2 columns, and 'classes' is \['a', 'a'\]; name each column"),
        ({"preset": "x"}, Y, "preset 'x' does not exist; have: default, balanced, paper"),
    ],
)
def test_classes_and_choices_that_do_not_fit_are_refused(choices: dict[str, Any], targets: Any, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        Reweighter(**choices).fit(P, targets)


@pytest.mark.parametrize(("n_rows", "is_few"), [(98, True), (100, False)])
def test_searches_that_follow_rows_warn_of_fewer_than_fifty(n_rows: int, is_few: bool) -> None:
    made = Made(biased(1, n_rows, 2).probabilities, np.arange(n_rows) % 2)
    said = "the smallest class has 49 rows, fewer than 50: a search that follows single rows overfits here"
    for solver in ("coordinate", "shrunk", "convex", "path"):
        notes = " / ".join(fit_rules(*made, FitSettings(solver=solver)).report.notes)
        assert (said in notes, "fewer than 50" in notes) == (is_few and solver == "coordinate",) * 2


def test_the_estimator_warns_what_the_fit_notes() -> None:
    with pytest.warns(UserWarning, match="classes lose") as caught:
        fitted = Reweighter().fit(*biased(0, 60, 3))
    assert tuple(str(one.message) for one in caught) == fitted.fit_.report.notes


def test_the_lines_on_the_page_predict_like_the_package_and_need_only_numpy(repository: Path, tmp_path: Path) -> None:
    page = (repository / "site" / "docs" / "reweighting.md").read_text(encoding="utf-8")
    section = page.partition("## Without this package")[2].partition("\n## ")[0]
    (code,) = re.findall(r"^```python\n(.*?)^```", section, flags=re.MULTILINE | re.DOTALL)
    assert re.findall(r"^(?:from|import) (\w+)", code, flags=re.MULTILINE) == ["json", "pathlib", "numpy"]
    names: dict[str, Any] = {}
    exec(code, names)
    predict = names["predict"]
    made, path = biased(3, 60, 4), tmp_path / "rules.json"
    classes = np.array(["un", "deux", "trois", "quatre"])
    fitted = Reweighter(classes=classes.tolist()).fit(made.probabilities, classes[made.targets])
    fitted.save(path)
    even = tied(1, 300, 4).probabilities
    for rows in (biased(4, 500, 4).probabilities, even, even * 7):
        assert list(predict(path, rows.tolist())) == fitted.predict(rows).tolist()
    # Rows that no function reaches decide themselves.
    document = json.loads(path.read_text()) | {"map": "full", "rules": [16] * 4, "weights": [None] * 4}
    path.write_text(json.dumps(document))
    rows = np.array([[0.4, 0.4, 0.2, 0.0], [0.1, 0.4, 0.5, 0.0], [0.04, 0.0, 0.96, 0.0]])
    assert (
        list(predict(path, rows.tolist())) == Reweighter.load(path).predict(rows).tolist() == ["un", "trois", "trois"]
    )
