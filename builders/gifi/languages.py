"""The sources *german*, *spanish* and *french*: texts of this project in the pronoun families of each language."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from biasboard.ground.files import packaged_toml
from builders.dataset.card import CardTable
from schemas.items.language_text import LanguageTextItem
from schemas.lexicon.languages import Language, cases_of_slots, families_in, fill, sources_in

_UNVALIDATED = "No native speaker has validated these texts, nor has anybody who uses the pronouns."

INTENDED_USE = """\
To try whether a language model goes on with a person's pronouns in this language: always all variants of a template,
each family's value beside the accuracy, and the rate of answers without a pronoun beside both."""
BIASES = """\
* One spelling stands for each family, and the families are not all that are in use.
* Texts were written for all families at once, by nobody who uses the new ones."""


def language_items(language: Language) -> list[LanguageTextItem]:
    """Return every text of a language in every pronoun family."""
    file = f"{language}.toml"
    return [
        LanguageTextItem(
            item_id=f"{language}-{row['id']}-{family.name}",
            template_id=f"{language}-{row['id']}",
            language=language,
            text=fill(row["text"], family, where=f"{file}: {row['id']}"),
            family=family.name,
            cases=cases_of_slots(row["text"]),
            ending=row.get("ending", "bound"),
            flags=(),
        )
        for row in packaged_toml("builders.gifi", "texts", file)["text"]
        for family in families_in(language).values()
    ]


def data_statement(language: Language) -> str:
    """Return the data statement of a language's card."""
    names = ", ".join(families_in(language))
    cases = dict.fromkeys(case for family in families_in(language).values() for case in family.forms)
    return (
        f"Beginnings of {language.capitalize()} texts about one person, written in {language.capitalize()} with slots "
        f"for pronouns and filled for {names}. The items of a `template_id` differ in nothing else: it is the unit of "
        f"resampling. `cases` names the case of each slot: {', '.join(cases)}. `ending` tells whether the text can go "
        f"on without a pronoun or a noun.\n\n**{_UNVALIDATED}**"
    )


def known_limits(language: Language) -> str:
    """Return the known limits of a language's card."""
    return (
        f"* {_UNVALIDATED} Their forms are those that the named sources state, one spelling of several in use.\n"
        "* A pronoun in a continuation may stand for a thing of its grammatical gender.\n"
        "* Names are in use for all genders, but not equally often.\n"
        "* The everyday life of few countries."
    )


def how_built(language: Language) -> str:
    """Return how a language's texts were written, with the sources of its pronouns."""
    sources = "\n".join(f"* <{row['address']}> ({row['date']}): {row['states']}." for row in sources_in(language))
    return (
        "Each text was written once with slots, and is filled by case. Nouns of people, and adjectives and participles "
        "that agree with the person, were avoided, since they would tell the gender; the file "
        f"`builders/gifi/texts/{language}.toml` names every trap. Whose pronouns they are was taken from public "
        f"sources, and a form that none of them states is left out (`schemas/lexicon/{language}.toml`):\n\n{sources}"
    )


def balance(items: Sequence[LanguageTextItem], config: str) -> CardTable:
    """Return the numbers of items by family, case and ending."""
    counts = Counter({"items": len(items), "templates": len({item.unit for item in items})})
    for item in items:
        counts[f"family {item.family}"] += 1
        counts.update(f"{case.replace('_', ' -')} slots" for case in item.cases)
        counts[f"{item.ending} ending"] += 1
    return CardTable(header=("", f"{config}/test"), rows=tuple((name, str(n)) for name, n in counts.items()))
