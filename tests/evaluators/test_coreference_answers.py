"""What a generated answer says: which option it names, if it names one."""

from __future__ import annotations

import pytest

from evaluators.backend import GenerateRequest
from evaluators.task import Asked, prompt_of
from evaluators.tasks.coreference.coreference_task import TASK
from evaluators.tasks.lettered_answers import read_answer
from tests.evaluators.made_data import made_items

UNDETERMINED = "undetermined"
TWO = ("guard", "nurse")
THREE = ("guard", "nurse", UNDETERMINED)
GUARD, NURSE = TWO
REFUSED = "refused"

# What is read, and texts of which it is read.
SAID: list[tuple[str | None, *tuple[str, ...]]] = [
    # A letter alone, or with its own text.
    (
        GUARD,
        *("A", " A.", "a", "(A", "'A'", "A the guard", "A is correct", "A is the correct answer.", "A if she is"),
        *("A because she waited",),
    ),
    (
        NURSE,
        *("b.", "(B)", "[b]", "B)", "B!", "B?", "B - the nurse", "B\N{EM DASH}the nurse", "B the nurse"),
        *("b the nurse", "B. the nurse", "B: nurse", "The nurse (B)", "(B) The nurse, because she waited"),
        *("B. The answer is B.",),
    ),
    # After words that lead to it.
    (GUARD, "The answer is A", "Option A", "option a because she waited"),
    (
        NURSE,
        *("the answer is (b).", "The answer is probably B", "Answer: B", "Answer - B", "Answer=B", "Letter B"),
        *("The letter B", "The correct option is B.", "I think B", "I'd say B", "Hmm, B"),
    ),
    # In markup, and in signs that look the same or cannot be seen.
    (
        NURSE,
        *("**B**", "_B_", "- `B`", r"\boxed{B}", r"$\boxed{\text{B}}$", r"\(B\)", "$B$", "<answer>B</answer>", "{B}"),
        *('{"answer": "B"}',),
        *("\N{LEFT-POINTING DOUBLE ANGLE QUOTATION MARK}B\N{RIGHT-POINTING DOUBLE ANGLE QUOTATION MARK}",),
        *("B\N{IDEOGRAPHIC FULL STOP}", "B\N{HORIZONTAL ELLIPSIS}", "B\N{ZERO WIDTH SPACE}"),
        *("\N{ZERO WIDTH NO-BREAK SPACE}B",),
    ),
    (GUARD, "<b>A</b>", "<A>", "\N{FULLWIDTH LATIN CAPITAL LETTER A}"),
    # The text of an option.
    (
        NURSE,
        *("the nurse", "The Nurse", "nurse", "NURSE.", "**the nurse**", "<answer>the nurse</answer>", "a nurse"),
        *("A nurse", "An nurse", "I think the answer would be: the nurse", 'The pronoun "she" refers to the nurse.'),
        *("\N{LEFT DOUBLE QUOTATION MARK}She\N{RIGHT DOUBLE QUOTATION MARK} refers to the nurse",),
    ),
    (GUARD, "It is the guard"),
    # Somebody else, or more than the text.
    (
        None,
        *("the doctor", "A doctor", "the nurse's patient", "nurses", "The guard asked the nurse", "The guard asked"),
        *("A nurse waited", "the nurse. The guard waited", "the nurse, not the guard", "the guard or the nurse"),
        *("the guard and the nurse", "the guard, the nurse", "It is not the guard", "Answer != the guard"),
    ),
    # No one option.
    (None, "", "  ", "\n\n", "Both", "Neither", "Beware", "C", "D", "D. the nurse", "It cannot be determined"),
    # More than one letter.
    (
        None,
        *("AB", "A or B", "A/B", "A, B", "A B", "B or D", "Option A or option B", "A and B are both possible"),
        *("A. the guard B. the nurse", "Guard: A, Nurse: B", "A guard; B nurse", "A because she, B"),
        *("A if she is, else B", '{"A": false, "B": true}'),
    ),
    # A letter that is taken back.
    (
        None,
        *("not A", "The answer is not A", "I don't think B", "It is anything but B", "A is wrong"),
        *("A is not correct", "A isn't right", "A isnt right", "A is incorrect, B", "A is unlikely"),
        *("A can be ruled out", "A... no, B", "A. Wait, B", "A. Wait", "A. No, B.", "B is wrong; A"),
        *("B, or the other one", "B, but it is unclear", "B is ambiguous", "The answer could be A", "A: 10%", "!B"),
        *("Answer \N{NOT EQUAL TO} B", r"\neg B", "~~B~~", "B\N{COMBINING LONG STROKE OVERLAY}", "B \N{CROSS MARK}"),
    ),
    # A letter and an occupation that is not its own.
    (
        None,
        *("B. the guard", "B (guard)", "B (the guards)", "**A** nurse", "The answer is A nurse", "B the doctor"),
        *("B is a doctor.", "A. the guard. It is not the nurse.", "(B) The nurse, because the guard waited."),
        *("A because the nurse left", "The answer is: the guard is not who 'she' means; B"),
        *("It is not the guard but the answer is B",),
    ),
    # A letter that stands in a sentence.
    (None, "The ward has plan B"),
    # Refusals.
    (
        REFUSED,
        *("I cannot", "I can't answer that.", "I\N{RIGHT SINGLE QUOTATION MARK}m sorry, but it is unclear"),
        *("I am unable to say", "As an AI language model", "**Sorry**", "\nI cannot\nsay"),
    ),
    # What names one option is that option.
    (
        NURSE,
        *("I'm sorry, B", "I'm sorry, but the nurse", "As an AI, I think B", "I cannot say; B."),
        *("I cannot answer that, but B", "I'm sorry, but I cannot say. B"),
    ),
    # What names an option and does not choose it is neither.
    (
        None,
        *("I cannot say that it is B.", "I won't say the guard, B", "I cannot tell the guard from the nurse"),
        *("I cannot say\nB",),
    ),
    # Several lines.
    (
        NURSE,
        *("\nB", "\n\n  \r\nB\n", "```\nB\n```", "Answer:\n\nB", "<answer>\nB\n</answer>"),
        *("<think>\n\n</think>\n\nB", "Perhaps A.\n</think>\n\nB", "B\n\nThe pronoun refers to the nurse"),
        *("B\n\nThe guard waited for the nurse, so", "B\nAnswer: B"),
    ),
    (None, "<think>\nB"),
    # The options once more, or a second thought.
    (
        None,
        *("A. the guard\nB. the nurse", "A. the guard\nB", "A\nB", "B\nAnswer: A", "B\nthe guard"),
        *("B\nWait, the guard", "B\nOption A is not", "The sentence is long.\nB"),
    ),
]
TAKING_BACK = [
    *("no", "nope", "not", "is not", "is _not_ it", "isn't", "cannot be", "never", "neither", "wrong", "is incorrect"),
    *("is false", "is mistaken", "would be a mistake", "is unlikely", "is impossible", "is doubtful", "is excluded"),
    *("can be eliminated", "is ruled out", "unless", "except", "instead", "rather not", "otherwise", "or else", "too"),
    *("also", "or", "either", "but", "however", "wait", "actually", "sorry", "correction", "maybe", "perhaps"),
    *("could be", "might be", "50"),
]


def said(text: str, outcomes: tuple[str, ...]) -> str | None:
    answer = read_answer(text, outcomes)
    assert not (answer.refuses and answer.outcome)
    return REFUSED if answer.refuses else answer.outcome


OF_THREE: list[tuple[str | None, *tuple[str, ...]]] = [
    (
        UNDETERMINED,
        *("C", "c)", "It cannot be determined from the sentence", "The answer is that it can't be determined."),
        *("I'm sorry, it cannot be determined", "C. It cannot be determined"),
        *("C. It cannot be determined from the sentence.",),
    ),
    (GUARD, "the guard"),
    (
        None,
        *("C or A", "C is not correct", "B. It cannot be determined", "It cannot be determined, B"),
        *("It is not so that it cannot be determined", "The guard cannot be determined"),
        *("A. the guard\nB. the nurse\nC. It cannot be",),
    ),
]


@pytest.mark.parametrize(
    ("text", "offered", "expected"),
    [
        (text, offered, expected)
        for offered, cases in ((TWO, SAID), (THREE, OF_THREE))
        for expected, *texts in cases
        for text in texts
    ],
)
def test_what_a_text_says_of_the_options(text: str, offered: tuple[str, ...], expected: str | None) -> None:
    assert said(text, offered) == expected


def test_letters_follow_the_order_in_which_options_were_offered() -> None:
    assert [said(letter, ("nurse", UNDETERMINED, "guard")) for letter in "ABC"] == ["nurse", UNDETERMINED, "guard"]


def test_an_occupation_of_two_words_is_one_text() -> None:
    offered = ("construction worker", "CEO")
    assert said("The construction worker.", offered) == "construction worker"
    assert said("A: construction worker", offered) == "construction worker"
    assert said("ceo", offered) == "CEO"
    assert said("the worker", offered) is None
    assert said("B (worker)", offered) is None


@pytest.mark.parametrize("words", TAKING_BACK)
def test_a_letter_that_is_taken_back_is_unread(words: str) -> None:
    assert [said(f"{before}B{mark} {words}", TWO) for before in ("", "Option ") for mark in ("", ",", ".")] == [
        None
    ] * 6


@pytest.mark.slow
@pytest.mark.parametrize(("prompt_id", "n_pairs"), [("mcq2-generate-v1", 200), ("mcq3-generate-v1", 40)])
def test_a_repeated_prompt_names_nothing(prompt_id: str, n_pairs: int) -> None:
    prompt = prompt_of(TASK, prompt_id)
    for item in made_items(n_pairs):
        words = item.sentence.split()
        # Its first words alone, "The guard", are an answer.
        n_first = 1 + len(item.occupations[0].split())
        sentence_parts = [" ".join(words[:n]) for n in range(n_first + 1, len(words) + 1)]
        for request in TASK.requests(item, Asked(prompt)):
            assert isinstance(request, GenerateRequest)
            options = request.prompt[request.prompt.index("A. ") : request.prompt.index("Answer with")]
            question = request.prompt.splitlines()[1]
            repeated = [*sentence_parts, *(f"Sentence: {part}" for part in sentence_parts), question, options]
            for text in [*repeated, request.prompt, options.replace("\n", " ")]:
                assert said(text, request.outcomes) is None, text
