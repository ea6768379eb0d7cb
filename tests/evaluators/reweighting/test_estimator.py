"""The estimator: scikit-learn's checks, names of classes, files, and what importing it loads."""

from __future__ import annotations

import json
import pickle
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import make_classification
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_predict
from sklearn.utils.estimator_checks import parametrize_with_checks

from biasboard.ground.errors import DataError
from evaluators.calibration.reweighting.estimator import Reweighter
from evaluators.calibration.reweighting.fitting import PRESETS, fit_rules
from evaluators.calibration.reweighting.problem import Annealing
from evaluators.calibration.reweighting.rules_file import StoredRules
from tests.commands import run
from tests.evaluators.reweighting import oracle
from tests.evaluators.reweighting.made import Made, biased

# The doubts of fits are tested elsewhere; here most data are small.
pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")
OTHER_WIDTH = "the data of the check have another number of columns than classes"
EXPECTED_TO_FAIL = dict.fromkeys(
    (
        "check_classifiers_classes",
        "check_dtype_object",
        "check_estimators_dtypes",
        "check_estimators_fit_returns_self",
        "check_estimators_nan_inf",
        "check_estimators_overwrite_params",
        "check_estimators_pickle",
        "check_n_features_in_after_fitting",
        "check_pipeline_consistency",
        "check_readonly_memmap_input",
        "check_transformer_data_not_an_array",
        "check_transformer_general",
        "check_transformer_preserve_dtypes",
    ),
    OTHER_WIDTH,
) | {"check_classifiers_train": "the data of the check are features, not probabilities, and wants them learned"}


@parametrize_with_checks([Reweighter()], expected_failed_checks=lambda _: EXPECTED_TO_FAIL, xfail_strict=True)  # type: ignore[untyped-decorator]
def test_scikit_learns_checks_pass(estimator: Any, check: Any) -> None:
    if check.func.__name__ == "check_array_api_input":
        return  # It skips itself unless a variable was set before scipy was imported.
    check(estimator)


@pytest.mark.parametrize("preset", ["default", "balanced"])
@pytest.mark.parametrize(
    "names",
    [["c", "a", "b"], [10, 2, 33], [1.0, 0.0, 2.0], [np.int32(7), np.int32(5), np.int32(6)], ["10", "9", "8"]],
)
def test_a_file_predicts_like_the_estimator_that_wrote_it(tmp_path: Path, preset: str, names: Any) -> None:
    made = biased(1, 60, 3)
    classes = np.array(names)
    fitted = Reweighter(preset, classes=names).fit(made.probabilities, classes[made.targets])
    fitted.save(tmp_path / "rules.json")
    loaded = Reweighter.load(tmp_path / "rules.json")
    fresh = biased(2, 500, 3).probabilities
    assert fitted.predict(fresh).tolist() == loaded.predict(fresh).tolist()
    np.testing.assert_array_equal(fitted.transform(fresh), loaded.transform(fresh))
    np.testing.assert_array_equal(fitted.predict_proba(fresh), loaded.predict_proba(fresh))
    assert fitted.classes_.tolist() == loaded.classes_.tolist() == classes.tolist()
    assert loaded.rules_.document == fitted.rules_.document
    loaded.save(tmp_path / "again.json")
    assert (tmp_path / "again.json").read_bytes() == (tmp_path / "rules.json").read_bytes()
    assert (loaded.preset, loaded.random_state) == (preset, 0)


@pytest.mark.parametrize("names", [["no", "yes"], [0, 1], [-1, 1], [False, True]])
def test_two_classes_work_like_more(tmp_path: Path, names: Any) -> None:
    made = biased(3, 300, 2, skew=1.0)
    classes = np.array(names)
    fitted = Reweighter().fit(made.probabilities, classes[made.targets])
    assert fitted.classes_.tolist() == names
    weights = fitted.rules_.rules.weights.tolist()
    expected = classes[oracle.weighted(made.probabilities.tolist(), weights)]
    assert fitted.predict(made.probabilities).tolist() == expected.tolist()
    fitted.save(tmp_path / "rules.json")
    loaded = Reweighter.load(tmp_path / "rules.json")
    assert loaded.predict(made.probabilities).tolist() == expected.tolist()


def test_classes_name_columns_in_their_order() -> None:
    made = biased(4, 200, 3)
    names = np.array(["z", "a", "m"])
    told = Reweighter(classes=["z", "a", "m"]).fit(made.probabilities, names[made.targets])
    order = np.argsort(names)
    plain = Reweighter().fit(made.probabilities[:, order], names[made.targets])
    assert plain.classes_.tolist() == ["a", "m", "z"]
    expected = plain.predict(made.probabilities[:, order])
    assert told.predict(made.probabilities).tolist() == expected.tolist()


def test_a_class_may_have_no_rows(tmp_path: Path) -> None:
    made = biased(4, 200, 3)
    probabilities = np.column_stack([made.probabilities[:, :1], np.full(200, 1e-3), made.probabilities[:, 1:]])
    names = np.array(["a", "c", "d"])[made.targets]
    fitted = Reweighter(classes=list("abcd")).fit(probabilities, names)
    assert fitted.fit_.report.supports[1] == 0
    fitted.save(tmp_path / "rules.json")
    assert json.loads((tmp_path / "rules.json").read_text())["fit_report"]["class_accuracies_after"][1] is None
    assert (
        Reweighter.load(tmp_path / "rules.json").predict(probabilities).tolist()
        == fitted.predict(probabilities).tolist()
    )


def searched(made: Made, path: Path, seed: int = 0) -> Reweighter:
    """Return an estimator with the rules of a short search for those of the paper."""
    settings = replace(PRESETS["paper"], annealing=Annealing(moves_per_level=20, n_restarts=1), seed=seed)
    fit = fit_rules(*made, settings)
    StoredRules.of(fit, settings, range(made.probabilities.shape[1])).write(path)
    return Reweighter.load(path)


def test_a_row_is_predicted_alike_whatever_rows_stand_beside_it(tmp_path: Path) -> None:
    made = biased(6, 200, 3)
    fitted = searched(made, tmp_path / "rules.json")
    assert fitted.rules_.rules.has_functions
    # Sums differ from 1 by the rounding of six decimals; one row is no distribution at all.
    rows = np.round(made.probabilities, 6)
    alone = fitted.transform(rows)
    beside = fitted.transform(np.vstack([rows, [[7.0, 1.0, 2.0]]]))
    np.testing.assert_array_equal(beside[:-1], alone)
    np.testing.assert_allclose(beside[-1], fitted.transform([[0.7, 0.1, 0.2]])[0])


def test_the_preset_of_the_paper_stores_its_choices(tmp_path: Path) -> None:
    made = biased(5, 100, 3)
    fitted = searched(made, tmp_path / "rules.json", seed=4)
    document = fitted.rules_.document
    assert (document.map, document.grid, document.n_weights) == ("full", "linear", 30)
    assert (document.objective, document.seed) == ("gini", 4)
    assert (fitted.preset, fitted.random_state) == ("paper", 4)
    rules = [0 if rule is None else rule for rule in document.rules]
    expected = [oracle.predict(row, rules, oracle.weights(30)) for row in made.probabilities.tolist()]
    assert fitted.predict(made.probabilities).tolist() == expected


def test_an_estimator_is_cloned_and_pickled() -> None:
    made = biased(6, 120, 3)
    fitted = Reweighter("balanced").fit(*made)
    assert clone(fitted).get_params() == fitted.get_params()
    again = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(again.predict(made.probabilities), fitted.predict(made.probabilities))
    with pytest.raises(NotFittedError):
        clone(fitted).predict(made.probabilities)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"weights": [1.0, None, 0.5]}, "weights.1"),
        ({"weights": [1.0, 0.5]}, "weights: has 2 entries, and there are 3 classes"),
        ({"weights": [1.0, -0.5, 0.5]}, "weights"),
        ({"rules": [None, None, 99], "weights": [1.0, 0.5, None]}, "rules.2 is 99, no membership function"),
        ({"rules": [None, None, 3]}, "rules.2 is 3, a membership function"),
        ({"classes": ["a", "a", "b"]}, "3 columns have 2 names"),
        ({"format": 2}, "format"),
        ({"index_base": 1}, "index_base"),
        ({"extra": 1}, "extra"),
        ({"map": "weights", "rules": [None, None, 3], "weights": [1.0, 0.5, None]}, "map"),
        ({"has_integer_classes": True, "classes": ["1", "x", "2"]}, "has_integer_classes"),
    ],
)
def test_a_file_that_says_nonsense_is_refused(tmp_path: Path, change: dict[str, Any], said: str) -> None:
    made = biased(1, 150, 3)
    path = tmp_path / "rules.json"
    Reweighter("balanced").fit(made.probabilities, np.array(list("abc"))[made.targets]).save(path)
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    with pytest.raises(DataError, match=said):
        Reweighter.load(path)


def test_files_that_are_none_are_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no such file; fit rules first"):
        Reweighter.load(tmp_path / "none.json")
    for text in ("", "[]", "{}", '{"weights": NaN}'):
        (tmp_path / "rules.json").write_text(text)
        with pytest.raises(DataError, match=r"rules\.json"):
            Reweighter.load(tmp_path / "rules.json")
    with pytest.raises(NotFittedError):
        Reweighter().save(tmp_path / "unfitted.json")


@pytest.mark.slow
def test_importing_the_estimator_loads_no_records_no_runs_and_no_torch() -> None:
    program = (
        "import sys\n"
        "import evaluators.calibration.reweighting.estimator\n"
        "unwanted = ('schemas.documents.record', 'evaluators.runs', 'evaluators.task', 'torch', 'transformers')\n"
        "print([name for name in unwanted if name in sys.modules])\n"
    )
    done = run("-c", program, fresh=True)
    assert (done.returncode, done.stdout.strip(), done.stderr) == (0, "[]", "")


@pytest.mark.parametrize(
    ("change", "preset"),
    [
        ({"solver": "equalise"}, "default"),
        ({"solver": "path", "objective": "cobias"}, "default"),
        ({"solver": "coordinate", "objective": "dcs"}, "default"),
        ({"solver": "anneal", "n_weights": 61, "grid": "log"}, "paper"),
        ({"solver": "anneal", "map": "membership", "rules": [17, 17, 17], "weights": [None, None, None]}, "paper"),
    ],
)
def test_rules_of_earlier_versions_still_predict(tmp_path: Path, change: dict[str, Any], preset: str) -> None:
    made = biased(1, 120, 3)
    Reweighter("balanced").fit(*made).save(tmp_path / "rules.json")
    document = json.loads((tmp_path / "rules.json").read_text(encoding="utf-8")) | change
    (tmp_path / "rules.json").write_text(json.dumps(document), encoding="utf-8")
    loaded = Reweighter.load(tmp_path / "rules.json")
    weights = [1.0 if weight is None else weight for weight in document["weights"]]
    assert loaded.predict(made.probabilities).tolist() == oracle.weighted(made.probabilities.tolist(), weights)
    assert loaded.preset == preset


def test_rows_that_a_classifier_has_not_seen_are_predicted_more_evenly() -> None:
    X, y = make_classification(  # noqa: N806
        4000, n_features=6, n_informative=4, n_classes=3, weights=[0.75, 0.15, 0.1], class_sep=0.7, random_state=1
    )
    model = LogisticRegression().fit(X[:2000], y[:2000])
    held_out = cross_val_predict(LogisticRegression(), X[:2000], y[:2000], method="predict_proba")
    corrected = Reweighter().fit(held_out, y[:2000]).predict(model.predict_proba(X[2000:]))
    worst, better = (
        min(float(np.mean(predicted[y[2000:] == name] == name)) for name in model.classes_)
        for predicted in (model.predict(X[2000:]), corrected)
    )
    assert better > worst + 0.1
