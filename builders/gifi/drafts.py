"""Makes the draft of a dataset from each source, with its card."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from biasboard.ground.progress import Report
from builders.dataset.card import Annotation, Card, CardTable
from builders.dataset.inputs import check_hashes, read_files
from builders.dataset.output import Draft, DraftSplit, Rule, take_units
from builders.gifi import BUILDER, languages, published, tagged_sources, tango
from builders.gifi.embedded import embedded_items, how_built, marked_items
from builders.gifi.variants import FLAG_RULES, problem_items, text_items
from schemas.documents.dataset import Item, Reject, Source
from schemas.items.assignment import AssignmentItem
from schemas.items.pronoun_text import PronounTextItem
from schemas.items.word_problem import WordProblemItem
from schemas.lexicon import CASES, pronoun_families
from schemas.lexicon.languages import LANGUAGE_CODES, Language

EMBEDDED_VERSION = "2.0.0"
"""Version of the dataset of the embedded texts; raise it whenever a text changes."""
_OTHER_VERSION = "1.0.0"
"""Version of the datasets that are built from published files."""
_SHAPES: Mapping[str, str] = {
    "recognition": "recognition",
    "continuation": "continuation",
    "assignment": "assignment",
    "math": "word_problem",
    "marked": "marked_text",
    **{language: f"{language}_recognition" for language in LANGUAGE_CODES},
}
RTP_LIMIT = 2200
"""Maximum number of items from RealToxicityPrompts if ``--limit`` is not given: as many as the published GIFI has."""

_TAGGED = (
    "Every text that speaks of one person as he or she is tagged by rule: the case of each pronoun, and the verbs that "
    "have to agree with they. Where neighbouring words do not settle a case, a verb or a referent, the text is "
    "rejected, so that texts with *her*, with contractions and with several people are rarer here than in the source."
)
_REPAIRED = (
    "Every published template is taken apart into text and slots. The case of each slot, pronouns of objects, groups "
    "and other people, and verbs that have to agree with they were read by us, text by text "
    "(`builders/gifi/published_tags.json`); typing errors of the assignment prompts and one answer are put right."
)
_COMPAT = (
    "The strings are those of the published files, byte by byte; the eleven equal rows of each assignment prompt are "
    "one item here. What is wrong with an item is a flag."
)

_INTENDED_USE = """\
To compare how a language model treats eleven pronoun families: always all variants of a template, each family's value
beside the index. A model that repeats its prompt recognises pronouns nearly perfectly; look at the echo rate too."""

_OUT_OF_SCOPE_USE = """\
Do not use it to infer the gender or the pronouns of people from their occupation, traits, name or text, nor to train or
tune systems that do. Do not use it to make decisions about people. Do not read a good score as the absence of bias. Do
not train on it a model that is evaluated on it."""

_DATA_STATEMENT = """\
English texts about one person, each written once with slots for pronouns of a given case and for verbs that agree with
them, and filled for he, she, they, thon, e, ae, co, vi, xe, ey and ze. The items of a `template_id` differ in nothing
else: it is the unit of resampling. `cases` names the case of each slot. Config `assignment` has no pronoun: the model
adds one. `em` and `emself` belong to both *e* and *ey*, so that some of their variants are equal; a flag says so.

**No human has validated these texts** beyond those who wrote or tagged them."""

_KNOWN_LIMITS = """\
* The forms of a family are one spelling of several in use; people who use neopronouns were not asked.
* Under *they* a text may be read as of several people, however its verbs agree.
* Names and words around the pronoun may hint at a gender; the same hint stands in all variants.
* One language, and the everyday life of few countries."""

_ANNOTATION = Annotation(
    protocol=(
        "The places of pronouns and of verbs that agree with them were marked in each text as *How it was built* says, "
        "and all variants follow from the marks. Whether a text suits a pronoun family was asked of nobody."
    ),
    annotators="Those who wrote or tagged the texts, or a program; no people who use neopronouns were asked.",
    per_item="1 per template",
)

_BIASES = """\
* One spelling stands for each family, and the eleven families are not all that are in use.
* Texts were written or chosen for *he* and *she* first, so that they may suit other families less well.
* Who holds an attribute to be feminine or masculine is a belief of few countries, which the data repeats to measure
  it."""

_PAPER = "Shan et al. 2025 (GIFI, arXiv:2506.15568, ACL 2025)"


def embedded(*, limit: int | None) -> Draft[Item]:
    """Build a draft from the texts of this project, with all four configs."""
    splits = take_units([split_of(config, items) for config, items in embedded_items().items()], limit)
    return draft_of(
        "embedded",
        splits,
        title="GIFI, embedded texts",
        sources=(_source("embedded texts", "builders/gifi/texts", EMBEDDED_VERSION, None, "Apache-2.0"),),
        limit=limit,
        version=EMBEDDED_VERSION,
        how_built=how_built(),
    )


def marked(*, limit: int | None) -> Draft[Item]:
    """Build a draft from the texts of this project about people with and without a demographic marker."""
    draft = draft_of(
        "markers",
        take_units([split_of("marked", marked_items())], limit),
        title="GIFI, recognition with demographic markers",
        sources=(_source("embedded texts", "builders/gifi/texts", _OTHER_VERSION, None, "Apache-2.0"),),
        limit=limit,
        how_built=(
            "Each sentence was written once with a slot for one adjective and slots for pronouns. It stands without an "
            "adjective and with each of 13, so that the items of a `template_id` differ in the pronoun family and in "
            "the `marker`. The `axis` of a marker is age, disability, nationality, race or religion: grounds on which "
            "the Equal Employment Opportunity Commission of the USA calls discrimination unlawful (age from 40), and "
            "categories of BBQ (Parrish et al. 2022, arXiv:2110.08193)."
        ),
        known_limits=(
            "* Nobody has validated these sentences, neither people with the markers nor anybody else.\n"
            "* Two or three words stand for each axis, and one adjective for a person; what is unusual of an adjective "
            "is measured with what it means."
        ),
    )
    statement = _DATA_STATEMENT.replace("differ in nothing\nelse", "differ in nothing\nelse but the marker")
    return replace(draft, card=replace(draft.card, data_statement=statement))


def in_language(language: Language, *, limit: int | None) -> Draft[Item]:
    """Build a draft from the texts of this project in a language other than English, with the config of its name."""
    items = languages.language_items(language)
    draft = draft_of(
        language,
        take_units([split_of(language, items)], limit),
        title=f"GIFI, recognition in {language.capitalize()}",
        sources=(
            _source("embedded texts", f"builders/gifi/texts/{language}.toml", _OTHER_VERSION, None, "Apache-2.0"),
        ),
        limit=limit,
        how_built=languages.how_built(language),
        flag_rules=(),
    )
    card = replace(
        draft.card,
        data_statement=languages.data_statement(language),
        biases=languages.BIASES,
        intended_use=languages.INTENDED_USE,
        known_limits=languages.known_limits(language),
        balance=languages.balance(items, language),
        language=LANGUAGE_CODES[language],
    )
    return replace(draft, card=card)


def from_tango(path: Path, *, limit: int | None) -> Draft[Item]:
    """Build a draft from the sentences of TANGO, with the config recognition.

    Raises:
        DataError: the file is missing, cannot be read, or is not the published one.
    """
    raw = tango.read_file(path)
    frames, rejects = tango.frames(raw)
    check_hashes({tango.FILE: raw}, {tango.FILE: tango.SHA256}, remedy=tango.REMEDY)
    return draft_of(
        "tango",
        take_units([split_of("recognition", text_items(frames))], limit),
        title="GIFI, recognition on TANGO",
        sources=(_source("TANGO misgendering prompts", tango.ADDRESS, None, tango.SHA256, "CC-BY-SA-4.0"),),
        limit=limit,
        rejects=rejects,
        reject_rules=tango.REJECT_RULES,
        how_built=(
            "Where TANGO's own variants in he and ey differ stands a pronoun, whose case the form of ey tells; where "
            "those in he and they differ besides stands a verb. A sentence is taken if its template gives TANGO's own "
            "strings for he, she, they and ey again."
        ),
        licence_terms="TANGO is licensed under CC BY-SA 4.0, and so is this adaptation of it.",
        known_limits=(
            "* The sentences follow twelve patterns (`topic`) with forty antecedents each.\n"
            "* Its authors ask that nobody use it to check or doubt who is transgender or non-binary."
        ),
        citation="TANGO (Ovalle et al. 2023, arXiv:2305.09941)",
    )


def from_gsm8k(path: Path, revision: str | None, *, limit: int | None, report: Report) -> Draft[Item]:
    """Build a draft from the word problems of GSM8K about one person, with the config math.

    Raises:
        DataError: the file is missing, cannot be downloaded, cannot be read, or holds no text that can be used.
        ConfigError: the limit is too small for one template.
    """
    frames, rejects, file = tagged_sources.gsm8k(path, revision, limit=limit, report=report)
    return draft_of(
        "gsm8k",
        (split_of("math", problem_items(frames)),),
        title="GIFI, math on GSM8K",
        sources=(replace(file, name="GSM8K, test split", licence="MIT"),),
        limit=limit,
        rejects=rejects,
        reject_rules=tagged_sources.REJECT_RULES,
        how_built=_TAGGED,
        licence_terms="GSM8K is licensed under the MIT licence, (c) 2021 OpenAI.",
        known_limits=(
            "* Models may have seen the problems and their answers in training.\n"
            "* Some problems name several people of one gender, or an animal; whom a pronoun means there is told by "
            "the story alone, which makes them harder in families that say nothing of gender."
        ),
        citation="GSM8K (Cobbe et al. 2021, arXiv:2110.14168)",
    )


def from_realtoxicityprompts(path: Path, revision: str | None, *, limit: int | None, report: Report) -> Draft[Item]:
    """Build a draft from the prompts of RealToxicityPrompts about one person, with the config continuation.

    Raises:
        DataError: the file is missing, cannot be downloaded, cannot be read, or holds no text that can be used.
        ConfigError: the limit is too small for one template.
    """
    limit = RTP_LIMIT if limit is None else limit
    frames, rejects, file = tagged_sources.realtoxicityprompts(path, revision, limit=limit, report=report)
    return draft_of(
        "realtoxicityprompts",
        (split_of("continuation", text_items(frames)),),
        title="GIFI, continuation on RealToxicityPrompts",
        sources=(replace(file, name="RealToxicityPrompts", licence="Apache-2.0"),),
        limit=limit,
        rejects=rejects,
        reject_rules=tagged_sources.REJECT_RULES,
        how_built=_TAGGED,
        licence_terms="RealToxicityPrompts is licensed under Apache-2.0. Its texts are of the web, and some offend.",
        citation="RealToxicityPrompts (Gehman et al. 2020, arXiv:2009.11462)",
    )


def from_published(folder: Path, *, compat: bool, limit: int | None) -> Draft[Item]:
    """Build a draft from the published templates of GIFI, with all four configs.

    ``compat`` keeps the published strings and flags their faults; otherwise they are repaired.

    Raises:
        DataError: a file is missing, cannot be read, or is not the published one.
    """
    files = read_files(
        folder,
        published.FILES.values(),
        what=f"the folder with the template files ({published.ADDRESS})",
        remedy=published.REMEDY,
    )
    prompts = published.prompt_rows(files[published.FILES["assignment"]])
    rows = {
        config: published.variant_rows(files[published.FILES[config]], config)
        for config in ("recognition", "continuation", "math")
    }
    check_hashes(files, published.SHA256, remedy=published.REMEDY)
    rejects: list[Reject] = []
    items: dict[str, Sequence[Item]] = {}
    for config in published.FILES:
        if config == "assignment":
            items[config] = published.assignment_items(prompts, as_published=compat)
        else:
            tags = published.published_tags()[config]
            items[config], rejected = published.variant_items(rows[config], config, tags, as_published=compat)
            rejects += rejected
    licences = {"recognition": "CC-BY-SA-4.0", "continuation": "Apache-2.0", "assignment": "MIT", "math": "MIT"}
    draft = draft_of(
        "gifi",
        take_units([split_of(config, of_config) for config, of_config in items.items()], limit),
        title="GIFI, the published templates" + (", exactly as published" if compat else ", repaired"),
        sources=tuple(
            _source(f"GIFI {name}", published.ADDRESS, None, published.SHA256[name], licences[config])
            for config, name in published.FILES.items()
        ),
        limit=limit,
        rejects=rejects,
        reject_rules=() if compat else published.REJECT_RULES,
        how_built=_COMPAT if compat else _REPAIRED,
        licence_terms=(
            "The published templates are under the MIT licence; those of recognition adapt TANGO (CC BY-SA 4.0), those "
            "of continuation RealToxicityPrompts (Apache-2.0), those of math GSM8K (MIT). Each config keeps the terms "
            "of its source."
        ),
        known_limits="* Texts of the config continuation are of the web, and some offend; all are in small letters.",
        citation="the sources of its templates",
        flag_rules=published.COMPAT_FLAG_RULES if compat else FLAG_RULES,
    )
    parameters = {**draft.parameters, "compat": "gifi-repo" if compat else None}
    return replace(draft, parameters=parameters, name=f"{draft.name}-compat" if compat else draft.name)


def split_of(config: str, items: Sequence[Item]) -> DraftSplit[Item]:
    """Return the only split of a config."""
    return DraftSplit(config=config, split="test", item_shape=_SHAPES[config], items=items)


def _source(name: str, address: str, revision: str | None, sha256: str | None, licence: str) -> Source:
    return Source(name=name, address=address, revision=revision, sha256=sha256, licence=licence, redistributable=True)


def draft_of(
    source: str,
    splits: Sequence[DraftSplit[Item]],
    *,
    title: str,
    sources: tuple[Source, ...],
    limit: int | None,
    how_built: str,
    licence_terms: str = "The texts are licensed under Apache-2.0, like the code.",
    citation: str = "the work that it follows,",
    version: str = _OTHER_VERSION,
    known_limits: str = "",
    rejects: Sequence[Reject] = (),
    reject_rules: tuple[Rule, ...] = (),
    flag_rules: tuple[Rule, ...] = FLAG_RULES,
) -> Draft[Item]:
    """Return a draft: the given values of the source, and everything that all sources share.

    Args:
        source: Name of the source, as ``--source`` selects it.
        splits: Items by config.
        title: Title of the card.
        sources: Sources with their hashes and licences.
        limit: Maximum number of items that the user asked for; None for all.
        how_built: Text of the card, like the next ones, whose defaults are those of texts of this project.
        licence_terms: Terms of the sources.
        citation: Sources to cite in addition to the paper.
        version: Version of the dataset.
        known_limits: Limits of this source only.
        rejects: Candidates that were dropped.
        reject_rules: Rules by which candidates were dropped.
        flag_rules: Rules by which items were flagged.
    """
    described = BUILDER.source(source)
    return Draft(
        name=described.dataset,
        benchmark="gifi",
        version=version,
        title=title,
        builder=f"builders.gifi ({source})",
        parameters={"source": source, "limit": limit},
        sources=sources,
        licence=described.licence,
        splits=tuple(splits),
        rejects=tuple(rejects),
        reject_rules=reject_rules,
        flag_rules=flag_rules,
        card=Card(
            data_statement=_DATA_STATEMENT,
            how_built=how_built,
            annotation=_ANNOTATION,
            biases=_BIASES,
            licence_terms=licence_terms,
            intended_use=_INTENDED_USE,
            out_of_scope_use=_OUT_OF_SCOPE_USE,
            known_limits=f"{_KNOWN_LIMITS}\n{known_limits}".strip(),
            balance=_balance(splits),
            citation=f"Cite this project with the dataset version, {citation} and {_PAPER}.",
            task_categories=("text-generation",),
            tags=("pronouns", "gender-bias", "neopronouns", "bias-evaluation"),
        ),
    )


def _balance(splits: Sequence[DraftSplit[Item]]) -> CardTable:
    counts = [_counted(split.items) for split in splits]
    attributes = ("occupation", "personality", "hobby", "colour")
    antecedents = ("masculine_name", "feminine_name", "neutral_name", "distal")
    ordered = (
        "items",
        "templates",
        *(f"family {name}" for name in pronoun_families()),
        *(f"{_spelt(case)} slots" for case in CASES),
        *(f"antecedent: {_spelt(name)}" for name in antecedents),
        *(f"{attribute}, {gender}" for attribute in attributes for gender in ("feminine", "masculine", "neutral")),
    )
    names = [name for name in ordered if any(count[name] for count in counts)]
    rows = [(name, *(str(count[name]) for count in counts)) for name in names]
    return CardTable(header=("", *(f"{split.config}/{split.split}" for split in splits)), rows=tuple(rows))


def _counted(items: Sequence[Item]) -> Counter[str]:
    count = Counter({"items": len(items), "templates": len({item.unit for item in items})})
    for item in items:
        if isinstance(item, AssignmentItem):
            count[f"{item.attribute}, {item.stereotype}"] += 1
        elif isinstance(item, PronounTextItem | WordProblemItem):
            count[f"family {item.family}"] += 1
            count.update(f"{_spelt(case)} slots" for case in item.cases)
            antecedent = getattr(item, "antecedent", None)
            if antecedent is not None:
                count[f"antecedent: {_spelt(antecedent)}"] += 1
    return count


def _spelt(name: str) -> str:
    return name.replace("_", " ")
