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

LETTERS = [
    ("A", GUARD),
    (" A.", GUARD),
    ("a", GUARD),
    ("(A", GUARD),
    ("b.", NURSE),
    ("(B)", NURSE),
    ("[b]", NURSE),
    ("B)", NURSE),
    ("B!", NURSE),
    ("B?", NURSE),
    ("'A'", GUARD),
    ("B - the nurse", NURSE),
    ("B\N{EM DASH}the nurse", NURSE),
    ("B the nurse", NURSE),
    ("b the nurse", NURSE),
    ("B. the nurse", NURSE),
    ("B: nurse", NURSE),
    ("A the guard", GUARD),
    ("The nurse (B)", NURSE),
    ("A is correct", GUARD),
    ("A is the correct answer.", GUARD),
    ("A if she is", GUARD),
    ("A because she waited", GUARD),
    ("(B) The nurse, because she waited", NURSE),
    ("B. The answer is B.", NURSE),
    # After words that lead to it.
    ("The answer is A", GUARD),
    ("the answer is (b).", NURSE),
    ("The answer is probably B", NURSE),
    ("Answer: B", NURSE),
    ("Answer - B", NURSE),
    ("Answer=B", NURSE),
    ("Option A", GUARD),
    ("option a because she waited", GUARD),
    ("Letter B", NURSE),
    ("The letter B", NURSE),
    ("The correct option is B.", NURSE),
    ("I think B", NURSE),
    ("I'd say B", NURSE),
    ("Hmm, B", NURSE),
    # In markup, and in signs that look the same or cannot be seen.
    ("**B**", NURSE),
    ("_B_", NURSE),
    ("- `B`", NURSE),
    (r"\boxed{B}", NURSE),
    (r"$\boxed{\text{B}}$", NURSE),
    (r"\(B\)", NURSE),
    ("$B$", NURSE),
    ("<answer>B</answer>", NURSE),
    ("<b>A</b>", GUARD),
    ("<A>", GUARD),
    ("{B}", NURSE),
    ('{"answer": "B"}', NURSE),
    ("\N{LEFT-POINTING DOUBLE ANGLE QUOTATION MARK}B\N{RIGHT-POINTING DOUBLE ANGLE QUOTATION MARK}", NURSE),
    ("\N{FULLWIDTH LATIN CAPITAL LETTER A}", GUARD),
    ("B\N{IDEOGRAPHIC FULL STOP}", NURSE),
    ("B\N{HORIZONTAL ELLIPSIS}", NURSE),
    ("B\N{ZERO WIDTH SPACE}", NURSE),
    ("\N{ZERO WIDTH NO-BREAK SPACE}B", NURSE),
]

TEXTS = [
    ("the nurse", NURSE),
    ("The Nurse", NURSE),
    ("nurse", NURSE),
    ("NURSE.", NURSE),
    ("**the nurse**", NURSE),
    ("<answer>the nurse</answer>", NURSE),
    ("a nurse", NURSE),
    ("A nurse", NURSE),
    ("An nurse", NURSE),
    ("It is the guard", GUARD),
    ("I think the answer would be: the nurse", NURSE),
    ('The pronoun "she" refers to the nurse.', NURSE),
    ("\N{LEFT DOUBLE QUOTATION MARK}She\N{RIGHT DOUBLE QUOTATION MARK} refers to the nurse", NURSE),
    # Somebody else, or more than the text.
    ("the doctor", None),
    ("A doctor", None),
    ("the nurse's patient", None),
    ("nurses", None),
    ("The guard asked the nurse", None),
    ("The guard asked", None),
    ("A nurse waited", None),
    ("the nurse. The guard waited", None),
    ("the nurse, not the guard", None),
    ("the guard or the nurse", None),
    ("the guard and the nurse", None),
    ("the guard, the nurse", None),
    ("It is not the guard", None),
    ("Answer != the guard", None),
]

UNREAD = [
    "",
    "  ",
    "\n\n",
    "Both",
    "Neither",
    "Beware",
    "C",
    "D",
    "D. the nurse",
    "It cannot be determined",
    # More than one letter.
    "AB",
    "A or B",
    "A/B",
    "A, B",
    "A B",
    "B or D",
    "Option A or option B",
    "A and B are both possible",
    "A. the guard B. the nurse",
    "Guard: A, Nurse: B",
    "A guard; B nurse",
    "A because she, B",
    "A if she is, else B",
    '{"A": false, "B": true}',
    # A letter that is taken back.
    "not A",
    "The answer is not A",
    "I don't think B",
    "It is anything but B",
    "A is wrong",
    "A is not correct",
    "A isn't right",
    "A isnt right",
    "A is incorrect, B",
    "A is unlikely",
    "A can be ruled out",
    "A... no, B",
    "A. Wait, B",
    "A. Wait",
    "A. No, B.",
    "B is wrong; A",
    "B, or the other one",
    "B, but it is unclear",
    "B is ambiguous",
    "The answer could be A",
    "A: 10%",
    "!B",
    "Answer \N{NOT EQUAL TO} B",
    r"\neg B",
    "~~B~~",
    "B\N{COMBINING LONG STROKE OVERLAY}",
    "B \N{CROSS MARK}",
    # A letter and an occupation that is not its own.
    "B. the guard",
    "B (guard)",
    "B (the guards)",
    "**A** nurse",
    "The answer is A nurse",
    "B the doctor",
    "B is a doctor.",
    "A. the guard. It is not the nurse.",
    "(B) The nurse, because the guard waited.",
    "A because the nurse left",
    "The answer is: the guard is not who 'she' means; B",
    "It is not the guard but the answer is B",
    # A letter that stands in a sentence.
    "The ward has plan B",
]

TAKING_BACK = [
    *("no", "nope", "not", "is not", "is _not_ it", "isn't", "cannot be", "never", "neither", "wrong", "is incorrect"),
    *("is false", "is mistaken", "would be a mistake", "is unlikely", "is impossible", "is doubtful", "is excluded"),
    *("can be eliminated", "is ruled out", "unless", "except", "instead", "rather not", "otherwise", "or else", "too"),
    *("also", "or", "either", "but", "however", "wait", "actually", "sorry", "correction", "maybe", "perhaps"),
    *("could be", "might be", "50"),
]

REFUSALS = [
    ("I cannot", REFUSED),
    ("I can't answer that.", REFUSED),
    ("I\N{RIGHT SINGLE QUOTATION MARK}m sorry, but it is unclear", REFUSED),
    ("I am unable to say", REFUSED),
    ("As an AI language model", REFUSED),
    ("**Sorry**", REFUSED),
    ("\nI cannot\nsay", REFUSED),
    # What names one option is that option.
    ("I'm sorry, B", NURSE),
    ("I'm sorry, but the nurse", NURSE),
    ("As an AI, I think B", NURSE),
    ("I cannot say; B.", NURSE),
    ("I cannot answer that, but B", NURSE),
    ("I'm sorry, but I cannot say. B", NURSE),
    # What names an option and does not choose it is neither.
    ("I cannot say that it is B.", None),
    ("I won't say the guard, B", None),
    ("I cannot tell the guard from the nurse", None),
    ("I cannot say\nB", None),
]

LINES = [
    ("\nB", NURSE),
    ("\n\n  \r\nB\n", NURSE),
    ("```\nB\n```", NURSE),
    ("Answer:\n\nB", NURSE),
    ("<answer>\nB\n</answer>", NURSE),
    ("<think>\n\n</think>\n\nB", NURSE),
    ("Perhaps A.\n</think>\n\nB", NURSE),
    ("<think>\nB", None),
    ("B\n\nThe pronoun refers to the nurse", NURSE),
    ("B\n\nThe guard waited for the nurse, so", NURSE),
    ("B\nAnswer: B", NURSE),
    # The options once more, or a second thought.
    ("A. the guard\nB. the nurse", None),
    ("A. the guard\nB", None),
    ("A\nB", None),
    ("B\nAnswer: A", None),
    ("B\nthe guard", None),
    ("B\nWait, the guard", None),
    ("B\nOption A is not", None),
    ("The sentence is long.\nB", None),
]


def said(text: str, outcomes: tuple[str, ...]) -> str | None:
    answer = read_answer(text, outcomes)
    assert not (answer.refuses and answer.outcome)
    return REFUSED if answer.refuses else answer.outcome


@pytest.mark.parametrize(
    ("text", "expected"), [*LETTERS, *TEXTS, *((text, None) for text in UNREAD), *REFUSALS, *LINES]
)
def test_what_a_text_says(text: str, expected: str | None) -> None:
    assert said(text, TWO) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("C", UNDETERMINED),
        ("c)", UNDETERMINED),
        ("It cannot be determined from the sentence", UNDETERMINED),
        ("The answer is that it can't be determined.", UNDETERMINED),
        ("I'm sorry, it cannot be determined", UNDETERMINED),
        ("C. It cannot be determined", UNDETERMINED),
        ("C. It cannot be determined from the sentence.", UNDETERMINED),
        ("the guard", GUARD),
        ("C or A", None),
        ("C is not correct", None),
        ("B. It cannot be determined", None),
        ("It cannot be determined, B", None),
        ("It is not so that it cannot be determined", None),
        ("The guard cannot be determined", None),
        ("A. the guard\nB. the nurse\nC. It cannot be", None),
    ],
)
def test_what_a_text_says_of_three_options(text: str, expected: str | None) -> None:
    assert said(text, THREE) == expected


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
