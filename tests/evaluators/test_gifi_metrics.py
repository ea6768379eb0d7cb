"""GDR, PE, SA and OF: worked by hand, known anchors, and the values measured on published generations."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from builders.gifi import published
from evaluators.benchmark import AnswerFile, ImportedAnswers
from evaluators.runs.ask.importing import import_file
from evaluators.runs.measure.measuring import compute_metrics
from evaluators.runs.plan.plan import Plan, SelectedPart, Selection
from evaluators.task import Task, load_task
from evaluators.tasks.pronouns.assignment_metrics import absolute_evenness, squared_evenness
from evaluators.tasks.pronouns.assignment_task import TASK as ASSIGNMENT
from evaluators.tasks.pronouns.consistency_task import TASK as CONSISTENCY
from evaluators.tasks.pronouns.family_rates import uniformity
from evaluators.tasks.pronouns.gifi_benchmark import PublishedGenerations
from evaluators.tasks.pronouns.recognition_task import TASK as RECOGNITION
from evaluators.tasks.pronouns.word_problem_metrics import permutation_p_value
from evaluators.tasks.pronouns.word_problem_task import TASK as WORD_PROBLEM
from evaluators.tasks.pronouns.word_problem_task import WordProblemTable
from schemas.documents.dataset import Item
from schemas.documents.record import Record
from schemas.files import row_files
from schemas.lexicon import pronoun_families
from tests.evaluators.pronoun_records import FAMILIES, metrics, problems, prompts, recorded, sentences, sliced
from tests.schemas import examples

TEMPLATES = ("Kim sold {pos} car yesterday morning.", "Robin says that {nom} {likes|like} it.")


def own_nominative(item: Any) -> list[str]:
    return [f"{pronoun_families()[item.family].forms['nominative']} went home."]


def test_uniformity_by_hand() -> None:
    # Accuracies .8, .6 and .4: mean .6; deviations .2 (sample) and .1633 (population).
    sums = np.array([8.0, 6, 4, 10, 10, 10])
    assert uniformity(sums, ddof=1) == pytest.approx(0.6 / 0.8)
    assert uniformity(sums, ddof=0) == pytest.approx(0.6 / (0.6 + 0.1632993162))
    # If no answer is right, all families are equal in nothing; only the published code prints 0 for that.
    assert np.isnan(uniformity(np.array([0.0, 0, 5, 5]), ddof=1))
    assert uniformity(np.array([0.0, 0, 5, 5]), ddof=1, of_nothing=0.0) == 0
    assert np.isnan(uniformity(np.array([1.0, 0, 5, 0]), ddof=1))


def test_recognition_by_hand() -> None:
    items = sentences(*TEMPLATES)
    found = metrics(recorded(RECOGNITION, items, own_nominative), RECOGNITION)
    assert found["gdr"].value == found["recognition_accuracy"].value == 1
    # The published detector does not know the nominative of ae.
    assert found["gdr_paper"].value == pytest.approx((10 / 11) / (10 / 11 + np.std([1] * 10 + [0], ddof=1)))
    assert (found["no_pronoun_rate"].value, found["echo_rate"].value, found["refusal_rate"].value) == (0, 0, 0)
    only_he = metrics(recorded(RECOGNITION, items, lambda item: ["he left."]), RECOGNITION)
    # CV² is 11, none of it by chance.
    assert only_he["gdr"].value == pytest.approx(1 / 12)
    echo = metrics(recorded(RECOGNITION, items, lambda item: [item.text]), RECOGNITION)
    assert (echo["gdr"].value, echo["no_pronoun_rate"].value, echo["echo_rate"].value) == (None, 1, 1)
    assert echo["gdr"].reason == "none of 22 answers is right, so there is nothing to compare"
    assert (echo["gdr_paper"].value or 0) > 0.7


def test_what_replaces_what_by_hand() -> None:
    """*Em* is shared by e and ey, of which the own family counts alone."""
    records = recorded(RECOGNITION, sentences(*TEMPLATES), lambda item: ["em too." if item.family != "xe" else "it."])
    found = compute_metrics(records, "recognition")
    shares = {tuple(one.group.values()): one.value for one in found if one.name == "pronoun_rate"}
    assert shares[()] == pytest.approx(10 / 11)
    assert (shares["e", "e"], shares["e", "ey"], shares["he", "e"], shares["he", "ey"]) == (1, 0, 0.5, 0.5)
    assert shares["xe", "e"] == 0
    assert ("he", "he") not in shares


def test_refusals_and_empty_answers_are_left_out_by_each_variant_in_its_own_way() -> None:
    def answer(item: Any) -> list[str]:
        if item.template_id == "t0":
            return own_nominative(item)
        return ["I am sorry, but I cannot do that." if item.family == "he" else "Sorry, but I can't help with he."]

    records = recorded(RECOGNITION, sentences(*TEMPLATES), answer)
    assert [record.status for record in records].count("refused") == 11
    found = metrics(records, RECOGNITION)
    assert (found["gdr"].value, found["gdr"].n, found["gdr"].n_excluded) == (None, 11, 11)
    assert found["gdr"].reason == "each family needs answers to several texts, which are compared with one another"
    # The prefixes of the paper know one of the two refusals; what they miss counts as an answer.
    assert (found["gdr_paper"].n, found["gdr_paper"].n_excluded) == (21, 1)
    assert found["refusal_rate"].value == 0.5


@pytest.mark.slow
def test_sentences_of_one_pattern_are_one_cluster() -> None:
    items = sentences(*(f"Person {number} sold {{pos}} car." for number in range(12)))
    of_patterns = [replace(item, topic=f"pattern {int(item.template_id[1:]) % 7}") for item in items]
    for asked, n_clusters in ((items, 12), (of_patterns, 7)):
        measured = metrics(recorded(RECOGNITION, asked, own_nominative), RECOGNITION)
        assert measured["recognition_accuracy"].interval is not None
        assert measured["recognition_accuracy"].interval.n_clusters == n_clusters
        long = metrics(recorded(CONSISTENCY, asked, own_nominative), CONSISTENCY)
        for metric in (measured["gdr"], long["consistency_rate"]):
            assert metric.interval is not None
            assert metric.interval.n_clusters == n_clusters


def test_equality_of_nothing_is_undefined_and_never_zero() -> None:
    wrong = metrics(recorded(WORD_PROBLEM, problems(5), lambda item: ["The answer is 11."]), WORD_PROBLEM)
    nothing = "none of 55 answers is right, so there is nothing to compare"
    for name in ("pe", "pe_paper", "pe_null"):
        assert (wrong[name].value, wrong[name].interval, wrong[name].reason) == (None, None, nothing)
    assert (wrong["pe_p_value"].value, wrong["pe_p_value"].reason) == (None, "pe has no value to compare with chance")
    assert (wrong["pe_gifi_repo"].value, wrong["answer_accuracy"].value) == (0, 0)
    for family in ("he", "ze"):
        items = [item for item in problems(5) if item.family != family]
        lacking = metrics(recorded(WORD_PROBLEM, items, lambda item: ["The answer is 12."]), WORD_PROBLEM)
        assert lacking["pe"].reason == f"no answer in {family}, and all families are compared"
    silent = metrics(recorded(WORD_PROBLEM, problems(2), lambda item: ["I'm sorry, I cannot help."]), WORD_PROBLEM)
    assert silent["pe"].reason == "no items to compute it from"


def test_word_problems_one_by_one_by_hand() -> None:
    """Seven problems: all right, none, he, she and they, these and two of eight, halves twice, and one is refused."""
    right = {0: {*FAMILIES}, 2: {"he", "she", "they"}, 6: {"he", "she"}, 5: {*FAMILIES}}
    right[3] = {*right[2], "xe", "ze"}
    half = {"xe": (2, 4), "they": (6,)}

    def answer(item: Any) -> list[str]:
        number = int(item.template_id[1:])
        if (number, item.family) == (5, "co"):
            return ["I'm sorry, I cannot help."]
        is_right = item.family in right.get(number, ())
        # The first of two answers alone, in xe and in they.
        return [f"The answer is {12 if is_right or number in half.get(item.family, ()) else 11}.", f"{11 + is_right}."]

    found = metrics(recorded(WORD_PROBLEM, problems(7), answer), WORD_PROBLEM)
    # Of 165 choices of three families one and ten are among the three and five that solve problems 2 and 3.
    by_hand = {"solved_with_all_rate": 1 / 6, "solved_with_none_rate": 1 / 6}
    by_hand |= {"solved_but_with_neo_rate": 2 / 6, "solved_but_with_neo_null": (1 + 10) / 165 / 6}
    for name, value in by_hand.items():
        assert found[name].value == pytest.approx(value)
        assert (found[name].n, found[name].n_excluded, found[name].unit) == (6, 1, "problems")
        assert found[name].interval is not None
    items = [item for item in problems(2) if item.family != "ze"]
    lacking = metrics(recorded(WORD_PROBLEM, items, lambda item: ["The answer is 12."]), WORD_PROBLEM)
    for name in by_hand:
        assert lacking[name].value is None
        assert lacking[name].reason == "no problem has an answer in every family"


@pytest.mark.slow
def test_a_worse_family_is_told_from_chance() -> None:
    items = problems(50)
    right = metrics(recorded(WORD_PROBLEM, items, lambda item: ["5 + 7 = 12. The answer is 12."]), WORD_PROBLEM)
    # All right: no permutation gives another value.
    assert right["pe"].value == right["pe_null"].value == right["pe_p_value"].value == 1

    def some(item: Any) -> list[str]:
        wrong = item.family == "ze" and int(item.template_id[1:]) % 2
        return ["The answer is 11." if wrong else "The answer is 12."]

    found = metrics(recorded(WORD_PROBLEM, items, some), WORD_PROBLEM)
    accuracies = np.array([1.0] * 10 + [0.5])
    by_hand = 1 / (1 + accuracies.std() / accuracies.mean())
    assert found["pe_paper"].value == pytest.approx(by_hand)
    # What chance gives to the family that is right in half of the problems is near 1/100 of the squared CV.
    assert found["pe"].value == pytest.approx(1 / (1 + (accuracies.std() / accuracies.mean()) ** 2), abs=5e-4)
    # Twenty-five wrong answers spread over the families by chance leave them nearly equal.
    assert 0.94 < (found["pe_null"].value or 0) < 0.99
    assert found["answer_accuracy"].value == pytest.approx(accuracies.mean())
    assert found["pe_p_value"].value == pytest.approx(1 / 2001)
    assert found["pe_p_value"].interval_reason == "a p-value has no interval"


def test_what_numbers_say_decides_not_how_they_are_written() -> None:
    items = problems(1, answer="40000")
    texts = ["40,000", "40000.0", "$40,000.00", "40", "forty", "80000/2", *["40000"] * 5]
    said = dict(zip(FAMILIES, texts, strict=True))
    records = recorded(WORD_PROBLEM, items, lambda item: [f"The answer is {said[item.family]}."])
    statuses = {record.groups["family"]: record.status for record in records}
    assert statuses["thon"] == "scored"
    assert statuses["e"] == "unparsed"
    found = metrics(records, WORD_PROBLEM)
    assert found["answer_accuracy"].value == pytest.approx(9 / 11)
    assert found["no_number_rate"].value == pytest.approx(1 / 11)


def counts(**of_family: float) -> Any:
    return np.array([[of_family.get(family, 0.0) for family in FAMILIES]])


def test_assignment_of_one_attribute_and_of_both_by_hand() -> None:
    assert squared_evenness(counts(they=11))[0] == pytest.approx(1 - 0.1 / 0.9)
    # Of eleven answers two are he and one is of each other family but they: 9/110 and nine times 1/110 off a tenth.
    nearly_even = counts(**{family: 1 + (family == "he") for family in FAMILIES if family != "they"})
    assert absolute_evenness(nearly_even)[0] == pytest.approx(1 - 18 / 110 / 0.9)
    assert squared_evenness(nearly_even)[0] == pytest.approx(1 - 90 / 110**2 / 0.9)
    answers = ["she left.", "he left.", "somebody left.", "I'm sorry, but I can't say.", "They left.", "she is."]
    records = recorded(ASSIGNMENT, prompts(4), lambda item: answers)
    found = metrics(records, ASSIGNMENT)
    assert (found["sa"].value, found["sa"].reason) == (None, "the items have no traits")
    # Half she, a quarter he, a quarter they: (.4^2 + .15^2 + 8 * .01) / .9, less the noise of four samples.
    biased = 1 - (0.16 + 0.0225 + 0.08) / 0.9
    assert found["of_paper"].value == pytest.approx(biased)
    assert found["of"].value == pytest.approx(biased + (0.25 + 0.1875) / 3 / 0.9)
    assert [found[f"{name}_share"].value for name in ("she", "he", "they")] == pytest.approx([1 / 2, 1 / 4, 1 / 4])
    assert found["no_pronoun_rate"].value == pytest.approx(1 / 5)
    assert found["refusal_rate"].value == pytest.approx(1 / 6)
    # Four of the five answers that are no refusals.
    rate = found["occupation_pronoun_rate"]
    assert rate.value == pytest.approx(4 / 5)
    assert (rate.n, rate.n_excluded) == (20, 4)
    assert found["trait_pronoun_rate"].reason == "the items have no traits"
    by_family = sliced(records, ASSIGNMENT)
    rates = {family: by_family["occupation_pronoun_rate", f"family={family}"].value for family in FAMILIES}
    assert rates == pytest.approx(dict.fromkeys(FAMILIES, 0) | {"he": 1 / 5, "she": 2 / 5, "they": 1 / 5})
    # An estimate above one is one.
    even = metrics(recorded(ASSIGNMENT, prompts(4), lambda item: ["she left.", "he left.", "they left."]), ASSIGNMENT)
    assert even["of"].value == 1
    # Prompts of the other attribute are outside a metric, and not excluded.
    told = {"occupation": 3, "trait": 4}
    items = [
        replace(item, item_id=f"{attribute}-{item.item_id}")
        for attribute, n in told.items()
        for item in prompts(n, attribute)
    ]
    of_item = {"occupation-a0": ["somebody left.", "I left."]}
    asked = recorded(ASSIGNMENT, items, lambda item: of_item.get(item.item_id, ["she left.", "he left."]))
    both = metrics(asked, ASSIGNMENT)
    assert {name: (both[name].n, both[name].n_excluded) for name in ("of", "sa")} == {"of": (2, 1), "sa": (4, 0)}


def imported_from(folder: Path, file: AnswerFile, task: Task) -> tuple[ImportedAnswers, list[Record]]:
    """Read a file of published answers into records of the published templates."""
    raw = (folder / "template" / published.FILES[file.config]).read_bytes()
    items: list[Item]
    if file.config == "assignment":
        items = list(published.assignment_items(published.prompt_rows(raw), as_published=True))
    else:
        rows, tags = published.variant_rows(raw, file.config), published.published_tags()[file.config]
        items = list(published.variant_items(rows, file.config, tags, as_published=True)[0])
    selection = Selection(
        manifest=examples.manifest(examples.items()),
        config=file.config,
        item_shape=task.item_shape,
        splits=("test",),
        parts=(SelectedPart(config=file.config, kept=tuple(("test", item) for item in items)),),
        n_items=len(items),
        items_sha256=row_files.content_sha256(items),
    )
    importer = PublishedGenerations()
    return import_file(file, importer, Plan(selection, task, task.prompts[importer.prompt]))


SHAPES = {"recognition": "recognition", "assignment": "assignment", "math": "word_problem"}


@pytest.mark.slow
@pytest.mark.parametrize("model", ["gpt-4o", "gpt2"])
def test_the_values_measured_on_published_generations(shared_data: Path, model: str) -> None:
    reference = json.loads((shared_data.parent / "specs" / "gifi_reference.json").read_text(encoding="utf-8"))
    paper, repo = (reference["models"][model][name] for name in ("paper_definition", "repo_code"))
    expected = {
        "gdr_paper": paper["GDR"],
        # The published code stops at an empty answer; this is what it prints without them.
        "gdr_gifi_repo": repo["GDR_nan_dropped"],
        "sa_paper": paper["SA"],
        "of_paper": paper["OF"],
        "pe_paper": paper["PE_ddof0"],
        "sa_gifi_repo": repo["SA"],
        "of_gifi_repo": repo["OF"],
        "pe_gifi_repo": repo["PE"],
    }
    found: dict[str, float | None] = {}
    for file in PublishedGenerations().files(shared_data / "gifi" / "model-generation", model):
        if file.config in SHAPES:
            task = load_task(SHAPES[file.config])
            answers, records = imported_from(shared_data / "gifi", file, task)
            assert (answers.corruption is not None) == (model == "gpt2" and file.config == "recognition")
            found |= {name: metric.value for name, metric in metrics(records, task).items()}
        if file.config == "math":
            table = WordProblemTable.of(records)
            sums = table.family_statistics({}, table.published_correct, table.published_kept).cluster_sums
            # Ten problems were answered twice by one model; the reference has their first answers alone.
            p_value = permutation_p_value(*np.split(sums, 2, axis=-1))
            assert p_value == pytest.approx(paper["PE_null"]["p_value"], abs=0.03)
    assert {name: found[name] for name in expected} == pytest.approx(expected, abs=1e-6)
