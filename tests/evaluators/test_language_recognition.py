"""Recognition in German, Spanish and French: lexicons, texts, detectors, and the measures against plain loops."""

from __future__ import annotations

import hashlib
import re
import tomllib
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from statistics import mean
from typing import Any

import pytest

from biasboard.ground.errors import DataError
from builders.gifi import drafts
from builders.gifi.languages import language_items
from evaluators.backend import GenerateRequest
from evaluators.task import Asked, task_for
from evaluators.tasks.pronouns.detectors.echo import echo_end
from evaluators.tasks.pronouns.detectors.language_pronoun import DETECTORS
from evaluators.tasks.pronouns.gifi_benchmark import BASELINES
from evaluators.tasks.pronouns.language_recognition import LanguageRecognitionTask
from schemas.documents.result import Metric
from schemas.items.language_text import LanguageTextItem
from schemas.lexicon.languages import LANGUAGE_CODES, Language, families_in, families_with, fill, sources_in
from tests.evaluators.pronoun_records import recorded, sliced

LANGUAGES = tuple(LANGUAGE_CODES)
ITEMS: Mapping[Language, list[LanguageTextItem]] = {language: language_items(language) for language in LANGUAGES}
TASKS: Mapping[Language, LanguageRecognitionTask] = {code: LanguageRecognitionTask(code) for code in LANGUAGES}
SENTENCES: dict[Language, list[dict[str, Any]]] = tomllib.loads(  # type: ignore[assignment]
    (Path(__file__).parents[1] / "data/language_pronouns.toml").read_text(encoding="utf-8")
)


@pytest.mark.parametrize("language", LANGUAGES)
def test_each_family_names_its_sources_and_has_forms_of_its_own(language: Language) -> None:
    keys = [source["key"] for source in sources_in(language)]
    families = families_in(language)
    assert sorted(keys) == sorted({key for family in families.values() for key in family.sources})
    assert all(source["address"].startswith("http") and source["date"] for source in sources_in(language))
    for name, family in families.items():
        assert family.forms["nominative"] == name
        assert family.sources
        assert families_with(name.upper(), language) == (name,)
    # The useless predictors take the first three as masculine, feminine and another one.
    assert [family.pronoun_class for family in families.values()][:3] == ["binary", "binary", "neo"]
    draft = drafts.in_language(language, limit=None)
    assert "No native speaker has validated these texts" in draft.card.known_limits
    assert (draft.human_validated, task_for(draft.splits[0].item_shape).name) == (False, f"{language}_recognition")


def test_forms_by_hand_from_the_sources() -> None:
    xier, sie = (families_in("german")[name] for name in ("xier", "sie"))
    assert fill("{nominative} sieht {accusative} mit {dative}", xier, where="") == "xier sieht xien mit xiem"
    assert fill("{Possessive_e} Uhr gehört {dative}", sie, where="") == "Ihre Uhr gehört ihr"
    assert families_with("le", "spanish") == ("elle",)
    assert families_with("ellui", "french") == ("iel",)
    with pytest.raises(DataError, match=r"^f: family 'iel' has no form for '\{dative\}'; have: nominative, stressed$"):
        fill("{dative}", families_in("french")["iel"], where="f")


@pytest.mark.parametrize("language", LANGUAGES)
def test_each_text_tells_its_family_to_a_reader_and_to_the_detector(language: Language) -> None:
    items, families = ITEMS[language], families_in(language)
    assert 20 <= len({item.unit for item in items}) <= 30
    assert Counter(item.family for item in items) == dict.fromkeys(families, len(items) // len(families))
    assert len({item.item_id for item in items}) == len({item.text for item in items}) == len(items)
    for item in items:
        assert list(item.problems()) == []
        assert not re.search(r"[{}]|\s{2}", item.text)
        assert DETECTORS[language].first_families(item.text) == (item.family,), item.text


def test_faults_of_items_are_named() -> None:
    item = ITEMS["german"][0]
    assert "is not in the lexicon of german" in next(replace(item, family="elle").problems())
    assert next(replace(item, cases=("stressed",)).problems()).startswith("cases: family 'er' has no stressed; have:")
    assert next(replace(item, cases=item.cases * 2).problems()).startswith("cases: lists 4 pronouns, the text has 2")
    assert next(replace(item, template_id="x").problems()).startswith("item_id: 'german-fahrrad-er' does not begin")


@pytest.mark.parametrize(("language", "n_agreeing"), [("german", 46), ("spanish", 37), ("french", 50)])
def test_first_pronouns_of_sentences_with_traps(language: Language, n_agreeing: int) -> None:
    """Known errors are in the file, as what is read; the last sentence of German is of an answer."""
    rows = SENTENCES[language]
    for row in rows:
        expected = row.get("read", row["families"])
        assert set(DETECTORS[language].first_families(row["text"])) == set(expected), row["text"]
    assert sum("read" not in row for row in rows) == n_agreeing


def test_a_repeated_prompt_is_left_out_up_to_a_pronoun_of_another_family() -> None:
    prompt = "Kim hat gestern xies Fahrrad repariert, und heute fährt xier damit zur Arbeit, weil"
    assert DETECTORS["german"].first_families(f"{prompt} sie gern fährt.", prompt) == ("sie",)
    assert DETECTORS["german"].first_families(prompt, prompt) == ()
    other = prompt.replace("xies", "sein").replace("xier", "er")
    assert DETECTORS["german"].first_families(other, prompt) == ("er",)
    assert echo_end(other, prompt, DETECTORS["german"].families_of) == 0


def measured(language: Language, answer: Callable[[LanguageTextItem], str]) -> Mapping[tuple[str, ...], Metric]:
    task = TASKS[language]
    return sliced(recorded(task, ITEMS[language], lambda item: [answer(item)], task.prompts["sampled-v1"]), task)


def test_a_model_that_says_they_are_two_by_hand() -> None:
    # Right about er, sie and dey; xier becomes dey, sier and hen have no pronoun.
    says = {"er": "er", "sie": "sie", "dey": "dey", "xier": "dey", "sier": "man", "hen": "es"}
    metrics = measured("german", lambda item: f" {says[item.family]} lacht.")
    assert metrics["recognition_accuracy",].value == pytest.approx(3 / 6)
    assert metrics["recognition_accuracy", "family_class=neo"].value == pytest.approx(1 / 4)
    assert metrics["no_pronoun_rate",].value == pytest.approx(2 / 6)
    assert metrics["accuracy_of_pronouns",].value == pytest.approx(3 / 4)
    assert metrics["pronoun_rate", "family=xier", "used=dey"].value == 1
    # Accuracies 1, 1, 1, 0, 0, 0: mean 1/2, sample variance 3/10, CV² 6/5.
    assert metrics["gdr",].value == pytest.approx(1 / (1 + 6 / 5))
    nothing = measured("german", lambda item: "")
    assert nothing["gdr",].value is None
    assert nothing["gdr",].reason == "none of 144 answers is right, so there is nothing to compare"


def test_the_tables_are_those_of_plain_loops() -> None:
    """Of Spanish, whose texts can go on without a pronoun."""
    items, families = ITEMS["spanish"], list(families_in("spanish"))

    def said(item: LanguageTextItem) -> str:
        number = hashlib.sha256(item.item_id.encode()).digest()[0]
        return (item.family, families[number % len(families)], "")[number % 3]

    metrics = measured("spanish", lambda item: f" {said(item)} ...")
    for family in families:
        mine = [item for item in items if item.family == family]
        right = [said(item) == family for item in mine]
        silent = [said(item) == "" for item in mine]
        assert metrics["recognition_accuracy", f"family={family}"].value == pytest.approx(mean(right))
        assert metrics["no_pronoun_rate", f"family={family}"].value == pytest.approx(mean(silent))
        of_pronouns = sum(right) / (len(mine) - sum(silent))
        assert metrics["accuracy_of_pronouns", f"family={family}"].value == pytest.approx(of_pronouns)
        for used in families:
            share = metrics["pronoun_rate", f"family={family}", f"used={used}"].value
            assert share == pytest.approx(mean(said(item) == used for item in mine))
    for ending in ("free", "bound"):
        silent = [said(item) == "" for item in items if item.ending == ending]
        assert metrics["no_pronoun_rate", f"ending={ending}"].value == pytest.approx(mean(silent))


@pytest.mark.parametrize("language", LANGUAGES)
def test_prompts_refusals_and_useless_predictors_speak_the_language(language: Language) -> None:
    refusals = {"german": "Es tut mir leid, aber er", "spanish": "Lo siento, no puedo ayudar con él."}
    refusals |= {"french": "Je suis désolé, je ne peux pas continuer avec elle."}
    task, item, families = TASKS[language], ITEMS[language][0], list(families_in(language))
    metrics = measured(language, lambda item: refusals[language] if item.family == families[0] else "")
    assert metrics["refusal_rate",].value == pytest.approx(1 / len(families))
    (plain,) = task.requests(item, Asked(task.prompts["sampled-v1"]))
    (instructed,) = task.requests(item, Asked(task.prompts["instructed-greedy-v1"]))
    assert isinstance(plain, GenerateRequest)
    assert isinstance(instructed, GenerateRequest)
    assert plain.prompt == item.text
    assert instructed.prompt.endswith(f"\n\n{item.text}")
    assert "Continue the" not in instructed.prompt
    baselines = {baseline.name: baseline for baseline in BASELINES}
    for family, name in zip(families, ("always-he", "always-she", "always-they"), strict=False):
        text = str(baselines[name].answer(plain).text)
        assert DETECTORS[language].first_families(text, plain.prompt) == (family,)
