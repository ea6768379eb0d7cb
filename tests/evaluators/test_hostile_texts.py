"""Texts made to keep a detector busy without end, and numbers with more digits than Python converts."""

from __future__ import annotations

from dataclasses import replace

import pytest

from biasboard.ground.errors import DataError
from evaluators.runs.measure.measuring import compute_metrics
from evaluators.tasks.lettered_answers import read_answer
from evaluators.tasks.pronouns.detectors.final_number import TOO_LONG, final_number, published_number
from evaluators.tasks.pronouns.detectors.first_pronoun import first_families, plain_text
from evaluators.tasks.pronouns.word_problem_task import TASK, WordProblemTable
from schemas.documents.record import Reading
from tests.commands import run
from tests.evaluators.pronoun_records import problems, recorded

_READ_ALL = """
import sys, time
from evaluators.tasks.lettered_answers import read_answer
from evaluators.tasks.labels.written_labels import read_label
from evaluators.tasks.pronouns.detectors.echo import echo_end
from evaluators.tasks.pronouns.detectors.final_number import final_number, published_number
from evaluators.tasks.pronouns.detectors.first_pronoun import first_families, first_family_published
from evaluators.tasks.answer_lines import is_refusal
from evaluators.scorers.lexicon import toxicity
from evaluators.scorers.vader import open_scorer

vader = open_scorer("sentiment", None, None)
prompt = "Q: Kim wrote a book about her cat and sold it.\\nA:"
labels = ["good", "a", *(f"a {number}" for number in range(100))]
for text in eval(sys.argv[1]):
    for read, *more in (
        (final_number, prompt), (published_number,), (first_families, prompt), (first_family_published,), (is_refusal,),
        (echo_end, prompt), (read_answer, ["guard", "nurse"]), (toxicity,), (read_label, labels),
        (lambda text: list(vader.score([text])),),
    ):
        begun = time.process_time()
        read(text, *more)
        if time.process_time() - begun > 4:
            sys.exit(f"{read} takes too long on {text[:20]!r}...")
print("read")
"""


# Each takes seconds to hours by patterns whose work grows with the square or the cube of the text, and others less than
# one second.
_TEXTS = """[
    "Q" + "\\n" * 70_000, "a-" * 35_000, "a." * 35_000, "x" * 100_000, "e1" + " e. " * 10_000, "es." * 10_000,
    ("E" + "\\n" * 50) * 700, "a" * 17_000 + " e5" * 3_500, "<b>" * 10_000 + "</b>" * 10_000, "<b>" * 17_000,
    "A xx a xx " * 3_500, "a" + "\\u0301\\u0323" * 35_000, "good but " * 3_500, "Q: Kim " * 5_000,
    "The answer is " + "1," * 17_000, "-" * 100_000 + "label a", "a" + "\\na" * 17_000,
    "Label" + "-" * 100_000, "x" + "-" * 100_000 + "y",
]"""


@pytest.mark.slow
def test_the_work_of_detectors_grows_with_the_text_only() -> None:
    ended = run("-c", _READ_ALL, _TEXTS)
    assert (ended.stdout, ended.stderr) == ("read\n", "")


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("Mail me@x.org, or see a-b.example.co.uk/e now", "Mail   or see   now"),
        ("look (https://e.g/ze) and (www.x) @co", "look (  and (  @co"),
    ],
)
def test_addresses_are_left_out(text: str, plain: str) -> None:
    assert plain_text(text) == plain


def test_pairs_of_tags_are_left_out_and_single_ones_stay() -> None:
    assert read_answer("<b><i>(B)</i></b>", ["guard", "nurse"]).outcome == "nurse"
    assert read_answer("<i>(A)</b>", ["guard", "nurse"]).outcome is None


def test_what_stands_far_before_a_word_counts() -> None:
    assert first_families("Stop." + " " * 500 + "Ze went home.") == ("ze",)
    assert first_families("Stop" + " " * 500 + "Ze went home.") == ()
    assert first_families("no" + " " * 500 + "es") == ()


@pytest.mark.parametrize(
    "text",
    [
        f"The answer is {'9' * 5000}.",
        f"It is 1/{'7' * 5000}",
    ],
)
def test_a_number_of_thousands_of_digits_is_a_number_but_no_other(text: str) -> None:
    assert final_number(text) == TOO_LONG
    published_number(text)


def test_such_an_answer_is_wrong_and_not_unread() -> None:
    (record,) = recorded(TASK, problems(1)[:1], lambda item: [f"The answer is {'9' * 5000}."])
    assert record.status == "scored"
    assert record.reading is not None
    assert record.reading.answers == (TOO_LONG,)
    table = WordProblemTable.of([record])
    assert (table.correct[0], bool(table.has_number[0])) == (0.0, True)


@pytest.mark.parametrize("told", ["1e999999999", "nan", "1/0"])
def test_a_reading_that_is_no_number_is_an_error(told: str) -> None:
    (record,) = recorded(TASK, problems(1)[:1], lambda item: ["9"])
    reading = Reading(outcomes=(), probabilities=(), answers=(told,))
    with pytest.raises(DataError, match="is no number; run or import the model again"):
        compute_metrics([replace(record, reading=reading)], TASK.name)
