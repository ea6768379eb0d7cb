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
    (GUARD, *("A", "a", "(A", "A the guard", "A is the correct answer.", "A because she waited")),
    (NURSE, *("B)", "b the nurse", "B\N{EM DASH}the nurse", "The nurse (B)", "B. The answer is B.")),
    # After words that lead to it.
    (GUARD, "Option A", "option a because she waited"),
    (NURSE, *("the answer is (b).", "Answer=B", "I'd say B")),
    # In markup, and in signs that look the same or cannot be seen.
    (NURSE, *("**B**", r"$\boxed{\text{B}}$", "<answer>B</answer>", '{"answer": "B"}', "B\N{ZERO WIDTH SPACE}")),
    (GUARD, "<b>A</b>", "\N{FULLWIDTH LATIN CAPITAL LETTER A}"),
    # The text of an option.
    (NURSE, *("NURSE.", "**the nurse**", "A nurse", "An nurse", 'The pronoun "she" refers to the nurse.')),
    # Somebody else, or more than the text.
    (None, *("the doctor", "the nurse's patient", "nurses", "The guard asked the nurse", "The guard asked")),
    (None, *("the nurse, not the guard", "the guard or the nurse", "It is not the guard", "Answer != the guard")),
    # No one option.
    (None, "", "\n\n", "Both", "Beware", "C", "D. the nurse", "It cannot be determined"),
    # More than one letter.
    (None, *("AB", "A or B", "A/B", "B or D", "A. the guard B. the nurse", "A guard; B nurse", "A if she is, else B")),
    # A letter that is taken back.
    (None, *("not A", "I don't think B", "A isn't right", "A isnt right", "A is incorrect, B", "A can be ruled out")),
    (None, *("A... no, B", "A. Wait", "B, but it is unclear", "The answer could be A", "A: 10%", "!B")),
    (None, *("Answer \N{NOT EQUAL TO} B", r"\neg B", "~~B~~", "B\N{COMBINING LONG STROKE OVERLAY}")),
    # A letter and an occupation that is not its own.
    (None, *("B. the guard", "B (the guards)", "The answer is A nurse", "B the doctor", "B is a doctor.")),
    (None, *("(B) The nurse, because the guard waited.", "It is not the guard but the answer is B")),
    # A letter that stands in a sentence.
    (None, "The ward has plan B"),
    # Refusals.
    (REFUSED, *("I can't answer that.", "I\N{RIGHT SINGLE QUOTATION MARK}m sorry, but it is unclear", "**Sorry**")),
    (REFUSED, *("As an AI language model", "\nI cannot\nsay")),
    # What names one option is that option, and what names an option and does not choose it is neither.
    (NURSE, *("I'm sorry, B", "I'm sorry, but the nurse", "I cannot say; B.", "I'm sorry, but I cannot say. B")),
    (None, *("I won't say the guard, B", "I cannot tell the guard from the nurse", "I cannot say\nB")),
    # Several lines.
    (NURSE, *("\n\n  \r\nB\n", "```\nB\n```", "Answer:\n\nB", "Perhaps A.\n</think>\n\nB", "B\nAnswer: B")),
    (None, "<think>\nB"),
    # The options once more, or a second thought.
    (None, *("A. the guard\nB. the nurse", "B\nAnswer: A", "B\nthe guard", "B\nWait, the guard", "B\nOption A is not")),
]
OF_THREE: list[tuple[str | None, *tuple[str, ...]]] = [
    (UNDETERMINED, *("c)", "It cannot be determined from the sentence", "I'm sorry, it cannot be determined")),
    (UNDETERMINED, "C. It cannot be determined from the sentence."),
    (GUARD, "the guard"),
    (None, *("C or A", "C is not correct", "B. It cannot be determined", "It cannot be determined, B")),
    (None, *("The guard cannot be determined", "A. the guard\nB. the nurse\nC. It cannot be")),
]


def said(text: str, outcomes: tuple[str, ...]) -> str | None:
    answer = read_answer(text, outcomes)
    assert not (answer.refuses and answer.outcome)
    return REFUSED if answer.refuses else answer.outcome


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


def test_letters_follow_the_order_in_which_options_were_offered_and_an_occupation_of_two_words_is_one_text() -> None:
    assert [said(letter, ("nurse", UNDETERMINED, "guard")) for letter in "ABC"] == ["nurse", UNDETERMINED, "guard"]
    offered = ("construction worker", "CEO")
    assert said("A: construction worker", offered) == "construction worker"
    assert said("the worker", offered) is None
    assert said("B (worker)", offered) is None


TAKING_BACK = (
    *("no", "nope", "is _not_ it", "isn't", "cannot be", "never", "neither", "wrong", "is incorrect", "is false", "50"),
    *("is mistaken", "is unlikely", "is impossible", "is doubtful", "is excluded", "is ruled out", "unless", "except"),
    *("instead", "rather not", "otherwise", "or else", "too", "also", "or", "but", "however", "wait", "actually"),
    *("sorry", "correction", "maybe", "perhaps", "could be", "might be"),
)


def test_a_letter_that_is_taken_back_is_unread() -> None:
    for words in TAKING_BACK:
        texts = [f"{before}B{mark} {words}" for before in ("", "Option ") for mark in ("", ",", ".")]
        assert [text for text in texts if said(text, TWO) is not None] == []


@pytest.mark.slow
@pytest.mark.parametrize("prompt_id", ["mcq2-generate-v1", "mcq3-generate-v1"])
def test_a_repeated_prompt_names_nothing(prompt_id: str) -> None:
    prompt = prompt_of(TASK, prompt_id)
    for item in made_items(8):
        words = item.sentence.split()
        # Its first words alone, "The guard", are an answer.
        n_first = 1 + len(item.occupations[0].split())
        sentence_parts = [" ".join(words[:n]) for n in range(n_first + 1, len(words) + 1)]
        for request in TASK.requests(item, Asked(prompt)):
            assert isinstance(request, GenerateRequest)
            options = request.prompt[request.prompt.index("A. ") : request.prompt.index("Answer with")]
            question = request.prompt.splitlines()[1]
            repeated = [*sentence_parts, f"Sentence: {item.sentence}", question, options, options.replace("\n", " ")]
            for text in [*repeated, request.prompt]:
                assert said(text, request.outcomes) is None, text
