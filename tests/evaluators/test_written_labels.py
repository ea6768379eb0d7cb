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

READ = [
    ("positive", SENTIMENT, "positive"),
    (" Positive.", SENTIMENT, "positive"),
    ("POSITIVE!", SENTIMENT, "positive"),
    ('"positive"', SENTIMENT, "positive"),
    ("\N{LEFT DOUBLE QUOTATION MARK}Neutral\N{RIGHT DOUBLE QUOTATION MARK}", SENTIMENT, "neutral"),
    ("**negative**", SENTIMENT, "negative"),
    ("`negative`", SENTIMENT, "negative"),
    ("- negative", SENTIMENT, "negative"),
    ("<answer>negative</answer>", SENTIMENT, "negative"),
    ("\\boxed{negative}", SENTIMENT, "negative"),
    ("\n\nLabel: negative\n", SENTIMENT, "negative"),
    ("label is negative.", SENTIMENT, "negative"),
    ("Answer:\nnegative", SENTIMENT, "negative"),
    ("Sentiment: negative", SENTIMENT, "negative"),
    ("**Sentiment:** Negative.", SENTIMENT, "negative"),
    ("**Answer:** negative", SENTIMENT, "negative"),
    ("The correct label is: 'Neutral'.", SENTIMENT, "neutral"),
    ("So the answer is neutral", SENTIMENT, "neutral"),
    ('{"label": "neutral"}', SENTIMENT, "neutral"),
    ("Output: positive\n\nThe writer likes it.", SENTIMENT, "positive"),
    ("Positive. The writer likes it.", SENTIMENT, "positive"),
    ("Positive - the writer likes it", SENTIMENT, "positive"),
    ("positive (the writer likes it)", SENTIMENT, "positive"),
    ("positive\npositive\npositive", SENTIMENT, "positive"),
    ("<think>It is negative, or not.</think>positive", SENTIMENT, "positive"),
    ("po\N{ZERO WIDTH SPACE}sitive", SENTIMENT, "positive"),
    ("No", YES_NO, "no"),
    ("no\nno\nno", YES_NO, "no"),
    ("Yes, because the text says so.", YES_NO, "yes"),
    ("(B)", LETTERS, "B"),
    ("b)", LETTERS, "B"),
    ("Option C", LETTERS, "C"),
    ("B. The answer is B", LETTERS, "B"),
    ("B) the second one", LETTERS, "B"),
    ('{"label": "neutral", "confidence": 0.9}', SENTIMENT, "neutral"),
    ("-neutral", SENTIMENT, "neutral"),
    ("not hate", HATE, "not hate"),
    ("Not hate, since nobody is attacked.", HATE, "not hate"),
    ("hate", HATE, "hate"),
    ("single_conn_inner", NESTED, "SINGLE_CONN_INNER"),
    ("SINGLE\\_CONN\\_INNER", NESTED, "SINGLE_CONN_INNER"),
    ("SINGLE_CONN_INNER_ANAPHORA.", NESTED, "SINGLE_CONN_INNER_ANAPHORA"),
    ("Answer: (B) System", ODD, "Answer: (B) System"),
    ("answer: (a) user", ODD, "Answer: (A) User"),
    ("user choice/control", POLICY, "User Choice/Control"),
    ("Don\N{RIGHT SINGLE QUOTATION MARK}t care", POLICY, "Don't Care"),
    ("Yes", ("Yes", "yes"), "Yes"),
    ("-1", ("-1", "0", "1"), "-1"),
    ("?", ("?", "!"), "?"),
]
UNREAD = [
    ("", SENTIMENT),
    ("\n", SENTIMENT),
    ("Label:", SENTIMENT),
    ("happy", SENTIMENT),
    ("positive or negative", SENTIMENT),
    ("positive/negative", SENTIMENT),
    ("Positive, negative", SENTIMENT),
    ("positive\nnegative", SENTIMENT),
    ("Positive. It is not negative.", SENTIMENT),
    ("positive\n\nWait, I read it again.", SENTIMENT),
    ("positive, or maybe something else", SENTIMENT),
    ("positive (wrong)", SENTIMENT),
    ("positive is wrong", SENTIMENT),
    ("Wrong: positive", SENTIMENT),
    ("Not: positive", SENTIMENT),
    ("Positive: negative", SENTIMENT),
    ("Time 10: positive", SENTIMENT),
    ("The writer felt positive.", SENTIMENT),
    ("positive reviews", SENTIMENT),
    ("positive?", SENTIMENT),
    ("not positive", SENTIMENT),
    ("!positive", SENTIMENT),
    ("positive \N{SEE-NO-EVIL MONKEY}", SENTIMENT),
    ("p\N{COMBINING LONG STROKE OVERLAY}o\N{COMBINING LONG STROKE OVERLAY}sitive", SENTIMENT),
    ("Is it positive", SENTIMENT),
    ("The answer is not positive", SENTIMENT),
    ("No problem", YES_NO),
    ("No, I cannot answer this.", YES_NO),
    ("Yes and no", YES_NO),
    ("A man is walking", LETTERS),
    ("A, B", LETTERS),
    ("D", LETTERS),
    ("A-B", LETTERS),
    ("hate, not hate", HATE),
    ("YES", ("Yes", "yes")),
    ("-1", ("0", "1")),
    ("Label: -1", ("0", "1")),
    ("Answer != positive", SENTIMENT),
    ('"positive" is wrong', SENTIMENT),
    ("(B) is wrong", LETTERS),
    ("SINGLE_CONN_OUTER", NESTED),
    ("SINGLE_CONN_INNER_ANAPHORA_2", NESTED),
    ("1.5", ("1", "2")),
    ("1/2", ("1", "2")),
    ("#1", ("1", "2")),
    ("10", ("1", "2")),
    ("<think>positive", SENTIMENT),
]
REFUSED = [
    ("I'm sorry, but I can't help with that.", SENTIMENT),
    ("I cannot say whether it is positive or negative.", SENTIMENT),
    ("As an AI language model, I have no opinion.", YES_NO),
    ("Unable to answer.", YES_NO),
    ("**Sorry**, no.", YES_NO),
]


@pytest.mark.parametrize(("text", "labels", "expected"), READ)
def test_a_label_is_read_in_every_usual_spelling(text: str, labels: tuple[str, ...], expected: str | None) -> None:
    assert read_label(text, labels) == (expected, False)


@pytest.mark.parametrize(("text", "labels"), UNREAD)
def test_an_ambiguous_answer_has_no_label_and_is_no_refusal(text: str, labels: tuple[str, ...]) -> None:
    assert read_label(text, labels) == (None, False)


@pytest.mark.parametrize(("text", "labels"), REFUSED)
def test_an_answer_that_declines_is_a_refusal(text: str, labels: tuple[str, ...]) -> None:
    assert read_label(text, labels) == (None, True)


def test_the_order_of_the_labels_decides_nothing() -> None:
    for text, labels, expected in READ:
        assert {read_label(text, order).outcome for order in itertools.permutations(labels)} == {expected}
    for text, labels in UNREAD:
        assert {read_label(text, order).outcome for order in itertools.permutations(labels)} == {None}


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
