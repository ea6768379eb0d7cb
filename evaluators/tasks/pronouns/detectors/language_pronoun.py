"""Detects the first pronoun of a German, Spanish or French text, and the pronoun families that it belongs to.

A form that several families share counts for each of them, and one that mostly means something else for none:

* German *sie* with a plural verb, and *Sie* and *Ihr* of politeness, are no family; *sein* counts before a noun, not as
  *to be*; *deren* and *denen* do not count as relative pronouns.
* Of Spanish only *él*, *ella* and *elle* count: *lo*, *la* and *le* are mostly articles or indirect objects.
* French *il* does not count where it stands for nobody (*il faut*), and *lui* only after a preposition or before
  *-même*: before a verb it is of both genders.

Words that stand for things (*el libro … él*, *la maison … elle*) are not told from those that stand for people.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import partial

from evaluators.tasks.pronouns.detectors.first_pronoun import Detector
from schemas.lexicon.languages import LANGUAGE_CODES, Language, families_in, families_with

_NEAR = 60
"""Number of characters before and after a word that count as its context."""
_QUOTED_BEFORE, _QUOTED_AFTER = re.compile(r"[\"“„«»'\u2018]\s?$"), re.compile(r"\s?[\"”“»«'\u2019](?!\w)")
_JOINED_BEFORE, _JOINED_AFTER = re.compile(r"\w[-\u2013@.]$"), re.compile(r"[-\u2013@]\w|\.\w")
_SENTENCE_START = re.compile(r"(?:^|[.!?:;…—]|\n)[\s\"“„«»'\u2018(\[—\u2013¿¡-]*$")
_OTHER = {
    "german": re.compile(r"\s?(?:/|\boder\b)\s?(\w+)", re.IGNORECASE),
    "spanish": re.compile(r"\s?(?:/|\bo\b|\bu\b)\s?(\w+)", re.IGNORECASE),
    "french": re.compile(r"\s?(?:/|\bou\b)\s?(\w+)", re.IGNORECASE),
}

# Finite verbs of the plural that stand directly before or after sie; full verbs before it may have it as their object.
_PLURAL = (
    "sind|waren|seien|wären|haben|hatten|hätten|werden|wurden|würden|können|konnten|könnten|müssen|mussten|müssten|"
    "wollen|wollten|sollen|sollten|dürfen|durften|mögen|mochten|möchten|gehen|gingen|kommen|kamen|fahren|fuhren|"
    "leben|lebten|wohnen|wohnten|bleiben|blieben"
)
_PLURAL_BEFORE = re.compile(rf"\b(?:{_PLURAL})\s+$", re.IGNORECASE)
_SINGULAR = (
    "kann|konnte|könnte|muss|musste|müsste|will|wollte|soll|sollte|darf|durfte|mag|mochte|möchte|wird|würde|hat|hatte|"
    "ließ|lässt|ging|geht"
)
# "sind", or any other verb in -en directly after sie, unless a modal verb follows: "weil sie lachen musste".
_VERB_AFTER = re.compile(rf"\s+(?P<verb>sind|[a-zäöüß]{{2,}}(?:en|ern|eln))\b(?!\s+(?:zu\b|{_SINGULAR}))")
_NO_VERBS = re.compile(
    r"(?:d|[mdsk]?ein|ihr|xies|sies|unser|eur|jed|dies|jen|all|beid|viel|wenig|einig|manch|welch|solch|d[ea]n|ander|"
    r"neu|alt|gut|groß|klein|lang|kurz|ganz|letzt|erst|nächst|eigen|warm|kalt|weiß|schwarz)en|(?:geg|weg|neb|zwisch|ob|"
    r"unt|inn|auß|hint|vorn|morg|selt|eb|dageg|desweg|zusamm|mitt|drauß|drinn|link|recht|dab)en|gern|gestern|sondern|"
    r"insofern|modern|zehn|mitten|ansonsten|unterwegs|bisweilen|zuweilen|manchmal|eben|deswegen|daneben|dagegen|"
    r"abwechselnd|wochen|tagen|stunden"
)
_YOU = "seid|wart|habt|hattet|könnt|müsst|wollt|sollt|dürft|werdet|wisst|geht|kommt|macht|seht"
_YOU_BEFORE, _YOU_AFTER = re.compile(rf"\b(?:{_YOU})\s+$", re.IGNORECASE), re.compile(rf"\s+(?:{_YOU})\b")
_RELATIVE = re.compile(
    r",\s*(?:(?:mit|von|bei|zu|aus|nach|in|an|auf|für|durch|über|unter|vor|neben|hinter)\s+)?$", re.I
)
# Models that know little German answer in English: "The hen said".
_ENGLISH_ARTICLE = re.compile(r"\b(?:the|an?|little|red|mother)\s+$", re.IGNORECASE)
# What is owned follows: a noun, or an adjective in -es or -er (sein neues Rad).
_OWNED = re.compile(r"\s+(?:[A-ZÄÖÜ]|(?!(?:aber|oder|immer|wieder|weiter|über|unter|hinter|es)\b)[a-zäöüß]+e[sr]\b)")

_IMPERSONAL = (
    r"y\s+(?:a|avait|aura|aurait|eut|ait)\b|faut\b|fallait\b|fallut\b|faudra|faudrait|a\s+(?:fallu|plu|neigé)\b|"
    r"pleu|plut\b|neige|grêle|vente\b|gèle|gelait|tonne\b|s['\u2019]agi|se\s+(?:peut|pourrait|trouve\s+que|fait\s+tard)|"
    r"semble\s+que|semblait\s+que|paraît|suffi|vaut\s+mieux|valait\s+mieux|vaudrait|arrive\s+que|reste\s+(?:encore\s+)?"
    r"(?:du|de|des|un|une|à|trois|deux|peu|quelques)\b|existe\b|convient\b|importe\b|"
    r"fai(?:t|sait)\s+(?:très\s+|encore\s+|trop\s+|si\s+|déjà\s+)?(?:beau|froid|chaud|nuit|jour|noir|doux|bon|frais|"
    r"gris|sombre|mauvais)|(?:est|était|sera|serait)\s+(?:très\s+|déjà\s+|si\s+|bien\s+|presque\s+|encore\s+)?(?:temps|"
    r"vrai|clair|tard|tôt|midi|minuit|possible|impossible|important|difficile|facile|nécessaire|évident|probable|"
    r"certain|rare|question|interdit|inutile|utile|dommage|\w+\s+heures?)\b|était\s+une\s+fois"
)
_IMPERSONAL_AFTER = re.compile(
    rf"\s+(?:ne\s+|n['\u2019]|me\s+|lui\s+|nous\s+|m['\u2019])?(?:{_IMPERSONAL})", re.IGNORECASE
)
_IMPERSONAL_BEFORE = re.compile(
    r"(?:\by\s+a(?:vait|ura)?-t|\bfaut|\bfaudra-t|\bpleut|\breste-t|\bs['\u2019]agit|\best|\bsemble-t|\bparaît)-$", re.I
)
_PLEASE = re.compile(r"\s+(?:vous|te)\s+pla[iî]t", re.IGNORECASE)
_PREPOSITION = re.compile(
    r"\b(?:à|avec|chez|contre|dans|de|derrière|devant|en|entre|envers|malgré|par|pour|sans|selon|sous|sur|vers|"
    r"c['\u2019]est|après|avant|grâce\s+à|autour\s+de|que|comme|et)\s+$",
    re.IGNORECASE,
)
_BEFORE_VERB = re.compile(r"\s+(?:\w+(?:er|ir|re|oir)|a|ont|avait|est|était|en|fait|faisait|faut|dit|dire)\b")


def _families_at(language: Language, text: str, match: re.Match[str]) -> tuple[str, ...]:
    families = families_with(match[0], language)
    if not families:
        return ()
    before = text[max(0, match.start() - _NEAR) : match.start()]
    after = text[match.end() : match.end() + _NEAR]
    if _QUOTED_BEFORE.search(before) and _QUOTED_AFTER.match(after):
        return ()
    starts_sentence = _SENTENCE_START.search(before) is not None
    if match[0][0].isupper() and _is_name(language, families, after, starts_sentence):
        return ()
    other = _OTHER[language].match(after)
    others = families_with(other[1], language) if other is not None else ()
    if others and set(others) != set(families):
        return tuple(name for name in families_in(language) if name in {*families, *others})
    if others or not _RULES[language](match[0], before, after, starts_sentence):
        return ()  # Forms of one family side by side are a list: xier/xiem.
    return families


def _is_name(language: Language, families: tuple[str, ...], after: str, starts_sentence: bool) -> bool:
    """Return True if a capitalised form is a name or an acronym: Al Pacino, the magazine Elle."""
    if starts_sentence:
        # German nouns are capitalised, so that one may follow a possessive.
        return language != "german" and re.match(r"\s[^\W\d_]*[A-ZÀ-Þ][a-zß-ÿ]", after) is not None
    is_binary = all(families_in(language)[name].pronoun_class == "binary" for name in families)
    return not is_binary or language == "french"


def _counts_in_german(word: str, before: str, after: str, starts_sentence: bool) -> bool:
    form = word.lower()
    if _JOINED_BEFORE.search(before) or _JOINED_AFTER.match(after):
        return False
    if form in ("sie", "ihr", "ihre", "ihren", "ihrem", "ihrer", "ihres"):
        if word[0].isupper() and not starts_sentence:
            return False  # The form of politeness.
        if form == "ihr":
            return not (_YOU_BEFORE.search(before) or _YOU_AFTER.match(after))
        return form != "sie" or not _is_plural(before, after)
    if form == "sein":
        return not re.search(r"\bzu\s+$", before) and _OWNED.match(after) is not None
    if form in ("deren", "denen"):
        return _RELATIVE.search(before) is None
    if form in ("hen", "hens"):
        return _ENGLISH_ARTICLE.search(before) is None
    return True


def _is_plural(before: str, after: str) -> bool:
    """Return True if the verb beside *sie* is a plural: *they* or the polite *you*."""
    if _PLURAL_BEFORE.search(before):
        return True
    verb = _VERB_AFTER.match(after)
    return verb is not None and _NO_VERBS.fullmatch(verb["verb"]) is None


def _counts_in_spanish(word: str, before: str, after: str, starts_sentence: bool) -> bool:
    if word.lower() in ("lo", "la", "le") or _JOINED_BEFORE.search(before) or _JOINED_AFTER.match(after):
        return False
    return word.lower() != "elle" or re.search(r"\bla\s+$", before, re.IGNORECASE) is None  # The letter ll.


def _counts_in_french(word: str, before: str, after: str, starts_sentence: bool) -> bool:
    form = word.lower()
    is_stressed = re.match(r"-même\b", after) is not None
    # A hyphen also joins an inverted subject to its verb: dit-elle, a-t-iel.
    if (_JOINED_AFTER.match(after) and not is_stressed) or re.search(r"\w[@.\u2013]$", before):
        return False
    if form == "il":
        return not (_IMPERSONAL_AFTER.match(after) or _IMPERSONAL_BEFORE.search(before) or _PLEASE.match(after))
    if form == "lui":
        return is_stressed or (_PREPOSITION.search(before) is not None and _BEFORE_VERB.match(after) is None)
    if form == "al":
        return re.search(r"\bet\s+$", before) is None or after[:1] != "."  # et al.
    return True


_RULES: Mapping[Language, Callable[[str, str, str, bool], bool]] = {
    "german": _counts_in_german,
    "spanish": _counts_in_spanish,
    "french": _counts_in_french,
}

DETECTORS: Mapping[Language, Detector] = {
    language: Detector(
        partial(families_with, language=language),
        partial(_families_at, language),
        # Words for things are not told from those for people.
        lambda word, families: "can also mean a thing, which nothing here tells apart",
    )
    for language in LANGUAGE_CODES
}
"""The detector of each language.

>>> DETECTORS["german"].first_families("Sie sind da. Xier lacht.")
('xier',)
>>> DETECTORS["french"].first_families("il pleut, dit-elle")
('elle',)
"""
