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
from builders.dataset.output import write_dataset
from builders.gifi import drafts
from builders.gifi.languages import language_items
from evaluators.backend import GenerateRequest
from evaluators.runs.measure.measuring import compute_metrics
from evaluators.task import Asked, task_for
from evaluators.tasks.pronouns.detectors.echo import echo_end
from evaluators.tasks.pronouns.detectors.language_pronoun import PRONOUNS_OF, first_families_in
from evaluators.tasks.pronouns.gifi_benchmark import BASELINES
from evaluators.tasks.pronouns.language_recognition import LanguageRecognitionTask
from schemas.documents.result import Metric
from schemas.items.language_text import LanguageTextItem
from schemas.lexicon.languages import LANGUAGE_CODES, Language, families_in, families_with, fill, sources_in
from tests.evaluators.pronoun_records import recorded

LANGUAGES = tuple(LANGUAGE_CODES)
ITEMS: Mapping[Language, list[LanguageTextItem]] = {language: language_items(language) for language in LANGUAGES}
TASKS: Mapping[Language, LanguageRecognitionTask] = {
    language: LanguageRecognitionTask(language) for language in LANGUAGES
}
SENTENCES: dict[Language, list[dict[str, Any]]] = tomllib.loads(  # type: ignore[assignment]
    (Path(__file__).parents[1] / "data/language_pronouns.toml").read_text(encoding="utf-8")
)
# Words that would tell the gender of the person, or bring in another one.
TRAPS: Mapping[Language, str] = {
    "german": r"\b(?:frau|mann|freund\w*|nachbar\w*|kolleg\w*|\w+innen|jemand\w*|niemand\w*|man|sich|ich|du|wir|mir)\b",
    "spanish": r"\b(?:alguien|nadie|(?:amig|vecin|hij|herman|compañer|médic)[oa]s?|yo|tú|mí|me|te|"
    r"(?:est[áa]|estaba|es|era|fue|parece|se siente|queda)\s+\w+(?:[ai]d[oa]|os[oa])|(?:cansad|content|list|tranquil|"
    r"seri|simpátic|enferm|segur|orgullos|sol|ocupad|preparad|dormid|nervios|alt|guap)[oa])\b",
    "french": r"\b(?:est|était|sera|semble)\s+\w+(?:é|ée|ie|u|ue|eux|euse|if|ive)\b|\bs['e]\s?\w*\s?est\b|"
    r"\b(?:quelqu.un\w*|on|je|tu|me|te|nous|ami\w*|voisin\w*|collègue\w*|seule?|contente?|prête?|il\s+(?:faut|pleut))\b",
}
# What people are called in the texts.
NAME = re.compile(r"\b(?!(?:El|Las?|En|Para|Según|Por|Chez|Pour|Avec|Sans|Selon|Ce)\b)[A-ZÁÉ][a-záéëï]+\b")


@pytest.mark.parametrize("language", LANGUAGES)
def test_each_family_names_its_sources_and_has_forms_of_its_own(language: Language) -> None:
    keys = [source["key"] for source in sources_in(language)]
    families = families_in(language)
    assert len(set(keys)) == len(keys)
    assert all(source["address"].startswith("http") and source["date"] for source in sources_in(language))
    assert {key for family in families.values() for key in family.sources} <= set(keys)
    assert set(keys) == {key for family in families.values() for key in family.sources}
    for name, family in families.items():
        assert family.forms["nominative"] == name
        assert family.sources
        assert families_with(name.upper(), language) == (name,)
    # The useless predictors take the first three as masculine, feminine and another one.
    assert [family.pronoun_class for family in families.values()][:3] == ["binary", "binary", "neo"]


def test_forms_by_hand_from_the_sources() -> None:
    german = families_in("german")
    assert [german["xier"].forms[case] for case in ("nominative", "accusative", "dative", "possessive")] == [
        *("xier", "xien", "xiem", "xies")
    ]
    assert fill("{Possessive_e} Uhr gehört {dative}", german["dey"], where="") == "Deren Uhr gehört denen"
    assert fill("{Possessive_e} Uhr gehört {dative}", german["sie"], where="") == "Ihre Uhr gehört ihr"
    assert families_with("le", "spanish") == ("elle",)
    assert families_with("ellui", "french") == ("iel",)
    with pytest.raises(DataError, match=r"^f: family 'iel' has no form for '\{dative\}'; have: nominative, stressed$"):
        fill("{dative}", families_in("french")["iel"], where="f")


@pytest.mark.parametrize("language", LANGUAGES)
def test_each_text_is_about_one_person_and_tells_no_gender_but_by_its_slots(language: Language) -> None:
    items, families = ITEMS[language], families_in(language)
    assert 20 <= len({item.unit for item in items}) <= 30
    assert Counter(item.family for item in items) == dict.fromkeys(families, len(items) // len(families))
    assert len({item.item_id for item in items}) == len({item.text for item in items}) == len(items)
    for item in items:
        assert list(item.problems()) == []
        assert not re.search(r"[{}]|\s{2}", item.text)
        words = re.findall(r"[^\W\d_]+", item.text)
        tells = [word for word in words if families_with(word, language)]
        if language == "spanish":  # Their clitics are articles and indirect objects too.
            tells = [word for word in tells if word.lower() in families]
        assert all(item.family in families_with(word, language) for word in tells), item.text
        assert len(tells) <= len(item.cases)
        assert re.search(TRAPS[language], item.text, re.IGNORECASE) is None, item.text
        if language != "german":  # All of its nouns are capitalised.
            assert len({name for name in NAME.findall(item.text) if not families_with(name, language)}) == 1, item.text
    # The text tells the family to a reader, and to the detector.
    assert all(first_families_in(language, item.text) == (item.family,) for item in items)


def test_faults_of_items_are_named() -> None:
    item = ITEMS["german"][0]
    assert list(replace(item, family="elle").problems()) == [
        "family: 'elle' is not in the lexicon of german; have: er, sie, dey, xier, sier, hen"
    ]
    assert next(replace(item, cases=("stressed",)).problems()).startswith("cases: family 'er' has no stressed; have:")
    assert next(replace(item, cases=item.cases * 2).problems()).startswith("cases: lists 4 pronouns, the text has 2")
    assert next(replace(item, template_id="x").problems()).startswith("item_id: 'german-fahrrad-er' does not begin")


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_dataset_is_built_alike_twice_and_says_that_nobody_has_validated_it(
    language: Language, tmp_path: Path
) -> None:
    draft = drafts.in_language(language, limit=None)
    for name in ("one", "two"):
        write_dataset(draft, tmp_path / name, version=None, overwrite=False)
    files = sorted(path.relative_to(tmp_path / "one") for path in (tmp_path / "one").rglob("*") if path.is_file())
    assert all((tmp_path / "one" / file).read_bytes() == (tmp_path / "two" / file).read_bytes() for file in files)
    card = (tmp_path / "one/README.md").read_text(encoding="utf-8")
    assert (draft.name, draft.version, draft.human_validated) == (f"gifi-{language}", "1.0.0", False)
    assert card.count("No native speaker has validated these texts") == 2
    assert f"language:\n- {LANGUAGE_CODES[language]}\n" in card
    assert all(source["address"] in card for source in sources_in(language))
    assert "English" not in card.split("## Data statement")[1].split("##")[0]
    assert task_for(draft.splits[0].item_shape).name == f"{language}_recognition"


@pytest.mark.parametrize("language", LANGUAGES)
def test_first_pronouns_of_sentences_with_traps(language: Language) -> None:
    rows = SENTENCES[language]
    assert len(rows) >= 40
    for row in rows:
        expected = row.get("read", row["families"])
        assert set(first_families_in(language, row["text"])) == set(expected), row["text"]


def test_how_often_the_detectors_agree_with_a_reader() -> None:
    """Known errors are in the file; before two were mended, French had two more. The last of German is of an answer."""
    agree = {
        language: (sum("read" not in row for row in SENTENCES[language]), len(SENTENCES[language]))
        for language in LANGUAGES
    }
    assert agree == {"german": (46, 47), "spanish": (37, 42), "french": (50, 51)}


def test_a_repeated_prompt_is_left_out_up_to_a_pronoun_of_another_family() -> None:
    prompt = "Kim hat gestern xies Fahrrad repariert, und heute fährt xier damit zur Arbeit, weil"
    assert first_families_in("german", f"{prompt} sie gern fährt.", prompt) == ("sie",)
    assert first_families_in("german", prompt, prompt) == ()
    other = prompt.replace("xies", "sein").replace("xier", "er")
    assert first_families_in("german", other, prompt) == ("er",)
    assert echo_end(other, prompt, PRONOUNS_OF["german"]) == 0


def measured(language: Language, answer: Callable[[LanguageTextItem], str]) -> Mapping[tuple[str, ...], Metric]:
    task = TASKS[language]
    records = recorded(task, ITEMS[language], lambda item: [answer(item)], task.prompts["sampled-v1"])
    metrics = compute_metrics(records, task.name)
    return {(metric.name, *(f"{key}={value}" for key, value in metric.group.items())): metric for metric in metrics}


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


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_tables_are_those_of_plain_loops(language: Language) -> None:
    families = list(families_in(language))

    def number(item: LanguageTextItem) -> int:
        return hashlib.sha256(item.item_id.encode()).digest()[0]

    def answer(item: LanguageTextItem) -> str:
        said = (item.family, families[number(item) % len(families)], "")[number(item) % 3]
        return f" {said} ..."

    metrics = measured(language, answer)
    said = {item.item_id: answer(item).split(" ")[1] for item in ITEMS[language]}
    for family in families:
        mine = [item for item in ITEMS[language] if item.family == family]
        right = [said[item.item_id] == family for item in mine]
        silent = [said[item.item_id] == "" for item in mine]
        assert metrics["recognition_accuracy", f"family={family}"].value == pytest.approx(mean(right))
        assert metrics["no_pronoun_rate", f"family={family}"].value == pytest.approx(mean(silent))
        assert metrics["accuracy_of_pronouns", f"family={family}"].value == pytest.approx(
            sum(right) / (len(mine) - sum(silent))
        )
        for used in families:
            share = mean(said[item.item_id] == used for item in mine)
            metric = metrics.get(("pronoun_rate", f"family={family}", f"used={used}"))
            assert (metric.value if metric is not None else 0) == pytest.approx(share)
    endings = {item.ending for item in ITEMS[language]}
    assert endings == ({"free", "bound"} if language == "spanish" else {"bound"})
    assert (("no_pronoun_rate", "ending=bound") in metrics) == (language == "spanish")
    for ending in endings if language == "spanish" else ():
        mine = [item for item in ITEMS[language] if item.ending == ending]
        silence = metrics["no_pronoun_rate", f"ending={ending}"].value
        assert silence == pytest.approx(mean(said[item.item_id] == "" for item in mine))


@pytest.mark.parametrize(
    ("language", "refusal"),
    [
        ("german", "Es tut mir leid, aber er"),
        ("spanish", "Lo siento, no puedo ayudar con él."),
        ("french", "Je suis désolé, je ne peux pas continuer avec elle."),
    ],
)
def test_refusals_are_known_in_each_language(language: Language, refusal: str) -> None:
    metrics = measured(language, lambda item: refusal if item.family == next(iter(families_in(language))) else "")
    assert metrics["refusal_rate",].value == pytest.approx(1 / len(families_in(language)))


@pytest.mark.parametrize("language", LANGUAGES)
def test_prompts_and_useless_predictors_speak_the_language(language: Language) -> None:
    task, item = TASKS[language], ITEMS[language][0]
    (plain,) = task.requests(item, Asked(task.prompts["sampled-v1"]))
    (instructed,) = task.requests(item, Asked(task.prompts["instructed-greedy-v1"]))
    assert isinstance(plain, GenerateRequest)
    assert isinstance(instructed, GenerateRequest)
    assert plain.prompt == item.text
    assert instructed.prompt.endswith(f"\n\n{item.text}")
    assert "Continue the" not in instructed.prompt
    families = list(families_in(language))
    for number, name in enumerate(("always-he", "always-she", "always-they")):
        (baseline,) = (each for each in BASELINES if each.name == name)
        text = baseline.answer(plain).text
        assert first_families_in(language, text or "", plain.prompt) == (families[number],)
    drawn = {
        first_families_in(language, baseline.answer(request).text or "")
        for item in ITEMS[language]
        for request in task.requests(item, Asked(task.prompts["sampled-v1"]))
        for baseline in BASELINES
        if baseline.name == "random-family"
    }
    assert drawn == {(family,) for family in families}
