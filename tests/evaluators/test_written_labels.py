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
        *("positive", " Positive.", "POSITIVE!", '"positive"', "Output: positive\n\nThe writer likes it."),
        *("Positive. The writer likes it.", "Positive - the writer likes it", "positive (the writer likes it)"),
        *("positive\npositive\npositive", "<think>It is negative, or not.</think>positive"),
        *("po\N{ZERO WIDTH SPACE}sitive",),
    ),
    (
        SENTIMENT,
        "neutral",
        *("\N{LEFT DOUBLE QUOTATION MARK}Neutral\N{RIGHT DOUBLE QUOTATION MARK}", "The correct label is: 'Neutral'."),
        *("So the answer is neutral", '{"label": "neutral"}', '{"label": "neutral", "confidence": 0.9}', "-neutral"),
    ),
    (
        SENTIMENT,
        "negative",
        *("**negative**", "`negative`", "- negative", "<answer>negative</answer>", "\\boxed{negative}"),
        *("\n\nLabel: negative\n", "label is negative.", "Answer:\nnegative", "Sentiment: negative"),
        *("**Sentiment:** Negative.", "**Answer:** negative"),
    ),
    (YES_NO, "no", "No", "no\nno\nno"),
    (YES_NO, "yes", "Yes, because the text says so."),
    (LETTERS, "B", "(B)", "b)", "B. The answer is B", "B) the second one"),
    (LETTERS, "C", "Option C"),
    (HATE, "not hate", "not hate", "Not hate, since nobody is attacked."),
    (HATE, "hate", "hate"),
    (NESTED, "SINGLE_CONN_INNER", "single_conn_inner", "SINGLE\\_CONN\\_INNER"),
    (NESTED, "SINGLE_CONN_INNER_ANAPHORA", "SINGLE_CONN_INNER_ANAPHORA."),
    (ODD, "Answer: (B) System", "Answer: (B) System"),
    (ODD, "Answer: (A) User", "answer: (a) user"),
    (POLICY, "User Choice/Control", "user choice/control"),
    (POLICY, "Don't Care", "Don\N{RIGHT SINGLE QUOTATION MARK}t care"),
    (("Yes", "yes"), "Yes", "Yes"),
    (("-1", "0", "1"), "-1", "-1"),
    (("?", "!"), "?", "?"),
    # Ambiguous, and no refusal.
    (
        SENTIMENT,
        None,
        *("", "\n", "Label:", "happy", "positive or negative", "positive/negative", "Positive, negative"),
        *("positive\nnegative", "Positive. It is not negative.", "positive\n\nWait, I read it again."),
        *("positive, or maybe something else", "positive (wrong)", "positive is wrong", "Wrong: positive"),
        *("Not: positive", "Positive: negative", "Time 10: positive", "The writer felt positive."),
        *("positive reviews", "positive?", "not positive", "!positive", "positive \N{SEE-NO-EVIL MONKEY}"),
        *("p\N{COMBINING LONG STROKE OVERLAY}o\N{COMBINING LONG STROKE OVERLAY}sitive", "Is it positive"),
        *("The answer is not positive", "Answer != positive", '"positive" is wrong', "<think>positive"),
    ),
    (YES_NO, None, "No problem", "No, I cannot answer this.", "Yes and no"),
    (LETTERS, None, "A man is walking", "A, B", "D", "A-B", "(B) is wrong"),
    (HATE, None, "hate, not hate"),
    (("Yes", "yes"), None, "YES"),
    (("0", "1"), None, "-1", "Label: -1"),
    (NESTED, None, "SINGLE_CONN_OUTER", "SINGLE_CONN_INNER_ANAPHORA_2"),
    (("1", "2"), None, "1.5", "1/2", "#1", "10"),
    # Declined.
    (SENTIMENT, REFUSED, "I'm sorry, but I can't help with that.", "I cannot say whether it is positive or negative."),
    (YES_NO, REFUSED, "As an AI language model, I have no opinion.", "Unable to answer.", "**Sorry**, no."),
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


def test_every_label_is_read_as_itself_whatever_stands_around_it() -> None:
    for labels in (SENTIMENT, YES_NO, LETTERS, HATE, NESTED, ODD, POLICY):
        for label, frame in itertools.product(labels, ("{}", "{}.", "Label: {}", "{}\n\nI am sure.", "'{}'")):
            assert read_label(frame.format(label), labels).outcome == label
        for one, other in itertools.permutations(labels, 2):
            assert read_label(f"{one} {other}", labels).outcome is None
            assert read_label(f"{one}\n{other}", labels).outcome is None


def test_a_label_that_may_go_on_is_not_read() -> None:
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
