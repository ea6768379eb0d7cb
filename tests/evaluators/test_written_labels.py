"""Which label an answer in words names."""

from __future__ import annotations

import itertools
from dataclasses import replace

import pytest

from evaluators.tasks.labels.classification_task import TASK
from evaluators.tasks.labels.written_labels import read_label
from schemas.documents.record import Exchange
from tests.schemas import examples

SENTIMENT = ("positive", "neutral", "negative")
YES_NO = ("yes", "no")
LETTERS = ("A", "B", "C")
HATE = ("hate", "not hate")
NESTED = ("SINGLE_CONN_INNER", "SINGLE_CONN_INNER_ANAPHORA", "PAIR_NONE")
ODD = ("Answer: (A) User", "Answer: (B) System")
POLICY = ("User Choice/Control", "First Party Collection/Use", "Don't Care")

REFUSED = "refused"
# The labels, what is read, and texts of which it is read.
SAID: list[tuple[tuple[str, ...], str | None, *tuple[str, ...]]] = [
    (
        SENTIMENT,
        "positive",
        *("positive", " Positive.", "Output: positive\n\nThe writer likes it.", "Positive - the writer likes it"),
        *("positive (the writer likes it)", "positive\npositive\npositive", "po\N{ZERO WIDTH SPACE}sitive"),
        "<think>It is negative, or not.</think>positive",
    ),
    (
        SENTIMENT,
        "neutral",
        *("\N{LEFT DOUBLE QUOTATION MARK}Neutral\N{RIGHT DOUBLE QUOTATION MARK}", "The correct label is: 'Neutral'."),
        *('{"label": "neutral", "confidence": 0.9}', "-neutral"),
    ),
    (
        SENTIMENT,
        "negative",
        *("**negative**", "<answer>negative</answer>", "\\boxed{negative}", "Answer:\nnegative"),
        "**Sentiment:** Negative.",
    ),
    (YES_NO, "no", "no\nno\nno"),
    (LETTERS, "B", "(B)", "B. The answer is B", "B) the second one"),
    (LETTERS, "C", "Option C"),
    (HATE, "not hate", "Not hate, since nobody is attacked."),
    (NESTED, "SINGLE_CONN_INNER", "SINGLE\\_CONN\\_INNER"),
    (NESTED, "SINGLE_CONN_INNER_ANAPHORA", "SINGLE_CONN_INNER_ANAPHORA."),
    (ODD, "Answer: (A) User", "answer: (a) user"),
    (POLICY, "Don't Care", "Don\N{RIGHT SINGLE QUOTATION MARK}t care"),
    (("Yes", "yes"), "Yes", "Yes"),
    (("-1", "0", "1"), "-1", "-1"),
    (("?", "!"), "?", "?"),
    # Ambiguous, and no refusal.
    (
        SENTIMENT,
        None,
        *("", "Label:", "happy", "positive or negative", "positive\nnegative", "positive, or maybe something else"),
        *("positive\n\nWait, I read it again.", "positive is wrong", "Wrong: positive", "Time 10: positive"),
        *("positive reviews", "positive?", "not positive", "!positive", "positive \N{SEE-NO-EVIL MONKEY}"),
        *("The answer is not positive", "Answer != positive", "<think>positive"),
    ),
    (YES_NO, None, "No, I cannot answer this."),
    (LETTERS, None, "A man is walking", "A-B"),
    (HATE, None, "hate, not hate"),
    (("Yes", "yes"), None, "YES"),
    (("0", "1"), None, "-1", "Label: -1"),
    (NESTED, None, "SINGLE_CONN_INNER_ANAPHORA_2"),
    (("1", "2"), None, "1.5", "1/2", "#1"),
    # Declined.
    (SENTIMENT, REFUSED, "I'm sorry, but I can't help with that."),
    (YES_NO, REFUSED, "**Sorry**, no."),
]


@pytest.mark.parametrize(
    ("text", "labels", "expected"), [(text, labels, read) for labels, read, *texts in SAID for text in texts]
)
def test_what_a_text_says_in_whatever_order_labels_are_offered(
    text: str, labels: tuple[str, ...], expected: str | None
) -> None:
    for order in itertools.permutations(labels):
        refuses = expected == REFUSED
        assert read_label(text, order) == (None if refuses else expected, refuses)


def test_every_label_is_read_as_itself_and_two_or_one_that_may_go_on_as_none() -> None:
    for labels in (SENTIMENT, YES_NO, LETTERS, HATE, NESTED, ODD, POLICY):
        for label in labels:
            assert {read_label(f"{before}{label}", labels).outcome for before in ("", "Label: ")} == {label}
        for one, other in itertools.permutations(labels, 2):
            assert {read_label(f"{one}{between}{other}", labels).outcome for between in " \n"} == {None}
    for text in ("SINGLE_CONN_INNER", "Label: SINGLE_CONN_INNER"):
        assert read_label(text, NESTED).outcome == "SINGLE_CONN_INNER"
        assert read_label(text, NESTED, is_cut=True).outcome is None
    assert read_label("PAIR_NONE, since the", NESTED, is_cut=True).outcome == "PAIR_NONE"


def answered(text: str, labels: tuple[str, ...], finish_reason: str = "stop") -> Exchange:
    return replace(examples.generated_exchange(text, labels), finish_reason=finish_reason)


def test_a_record_says_what_was_read_or_why_nothing_was() -> None:
    read = TASK.read([answered("Label: Neutral", SENTIMENT)], None)
    assert read.status == "scored"
    assert read.reading is not None
    assert (read.reading.outcomes, read.reading.probabilities) == (SENTIMENT, (0.0, 1.0, 0.0))
    assert read.reading.answers == ("neutral",)
    for text, status, reason in (
        ("I cannot answer.", "refused", "the answer declines: 'I cannot answer.'"),
        ("good", "unparsed", "the answer names no one label: 'good'"),
    ):
        read = TASK.read([answered(text, SENTIMENT)], None)
        assert (read.status, read.reading, read.reason) == (status, None, reason)
    assert TASK.read([answered("neutral", SENTIMENT, "length")], None).status == "unparsed"
