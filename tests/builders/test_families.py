"""The embedded frames in all pronoun families, recounted with plain loops."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from biasboard.ground.errors import ConfigError
from builders.dataset.output import Draft
from builders.synthbias import families, family_sets
from builders.synthbias.annotation.annotated import read_annotated
from builders.synthbias.families import plural_after
from builders.synthbias.minimal_pairs import Slotted, items_of
from schemas.files.row_files import content_sha256
from schemas.items.coreference import CoreferenceItem
from schemas.items.family_coreference import FamilyCoreferenceItem
from schemas.lexicon import PronounCase, pronoun_families
from tests import commands
from tests.evaluators.made_data import write_dataset

FAMILIES = tuple(pronoun_families())
PLURALS = {"was": "were", "has": "have", "lives": "live", "runs": "run", "hits": "hit", "needs": "need"}
CONTENT_SHA256 = {
    "type1": "b473c4f3750efcc97f686854100d5f42f43632b8af8bf77c32c0de0831089db2",
    "type2": "ab3d3437ef007f94e2dc3363de27a728581fad39cb581a5f9b6f165d027a1c48",
}
"""Of version 2.0.0, seed 0. A change of any item raises DATASET_VERSION; then take over the new hashes."""


@pytest.fixture(scope="module")
def whole() -> Draft[FamilyCoreferenceItem]:
    return families.draft()


def sets_of(draft: Draft[FamilyCoreferenceItem]) -> dict[str, list[FamilyCoreferenceItem]]:
    sets: dict[str, list[FamilyCoreferenceItem]] = defaultdict(list)
    for split in draft.splits:
        for item in split.items:
            sets[item.set_id].append(item)
    return sets


def words_of(item: FamilyCoreferenceItem) -> list[str]:
    return [word.strip(",.") for word in item.sentence.split(" ")]


def test_every_set_has_each_family_once_and_a_form_of_its_case_or_is_rejected(
    whole: Draft[FamilyCoreferenceItem],
) -> None:
    assert whole.version == "2.0.0"
    assert {split.config: content_sha256(split.items) for split in whole.splits} == CONTENT_SHA256
    assert {split.config: len(split.items) for split in whole.splits} == {"type1": 4312, "type2": 4070}
    sets = sets_of(whole)
    assert len(sets) == 392 + 370
    for members in sets.values():
        assert tuple(member.family for member in members) == FAMILIES
        for member in members:
            forms = pronoun_families()[member.family].forms
            assert member.pronoun == forms[member.pronoun_case]
            assert member.sentence[member.pronoun_start :].startswith(member.pronoun)
            assert [*member.problems()] == []
    # Frames that they does not fit are rejected with the reason.
    reasons = families.plural_readings()
    assert Counter(reject.rule for reject in whole.rejects) == {"gap_too_small": 5, "plural_reading": 22}
    for reject in whole.rejects:
        if reject.rule == "plural_reading":
            assert reject.reason == reasons[str(reject.source_row).rpartition("-")[0]]
    assert not {item.template_id for split in whole.splits for item in split.items} & reasons.keys()


def test_only_the_pronoun_differs_and_with_they_the_verb_behind_it(whole: Draft[FamilyCoreferenceItem]) -> None:
    changed: Counter[tuple[str, str]] = Counter()
    for members in sets_of(whole).values():
        he = words_of(members[0])
        place = members[0].sentence[: members[0].pronoun_start].count(" ")
        for member in members:
            words = words_of(member)
            assert (he[place], words[place]) == (members[0].pronoun, member.pronoun)
            pairs = enumerate(zip(he, words, strict=True))
            verbs = [(old, new) for number, (old, new) in pairs if number != place and old != new]
            if member.family == "they":
                assert len(verbs) <= 1
                changed.update(verbs)
            else:
                assert verbs == []
        they = next(member for member in members if member.family == "they")
        if they.pronoun_case == "nominative":
            # The subject is followed by no verb that only fits one person.
            assert re.search(r"\bthey (?:\w+ly )?(?:was|is|has|does|\w+[^s]s)\b", they.sentence) is None, they.sentence
    assert {old for old, _ in changed} == {*PLURALS}
    assert all(PLURALS[old] == new for old, new in changed)


@pytest.mark.slow
def test_a_limit_keeps_whole_sets_of_both_types() -> None:
    small = families.draft(limit=50)
    assert [len(split.items) for split in small.splits] == [22, 22]
    assert {len(members) for members in sets_of(small).values()} == {11}
    with pytest.raises(ConfigError, match=r"--limit 21: one set of pronoun families from each of .* at least 22 items"):
        families.draft(limit=21)
    assert families.draft(limit=50, seed=1).splits != small.splits


@pytest.mark.parametrize(
    ("after_he", "after_they"),
    [
        (" was late.", " were late."),
        (" has never left, since the door was shut.", " have never left, since the door was shut."),
        (" could not escape.", " could not escape."),
        (" really enjoys it, and the cook knows.", " really enjoy it, and the cook knows."),
        (" carries boxes, since the lift broke.", " carry boxes, since the lift broke."),
        (" finishes first.", " finish first."),
        (" wasn't there.", " weren't there."),
        (" wrote reports and drinks.", " wrote reports and drinks."),
        # Not known.
        (" yodelt.", None),
        (" cleans and irons shirts.", None),
        (" better leaves.", None),
        ("'s late.", None),
        (" was late and has left.", None),
        (", was late.", None),
    ],
)
def test_a_verb_becomes_plural_or_is_not_known(after_he: str, after_they: str | None) -> None:
    assert plural_after(after_he) == after_they


def pair(before: str, case: PronounCase, after: str) -> tuple[CoreferenceItem, ...]:
    """A minimal pair about a guard and a nurse, of whom the guard is meant."""
    slotted = Slotted("type2", before, case, after, "guard", "nurse", "first")
    return items_of(slotted, template_id=None, source_row=None)


def sets_from(folder: Path, pairs: Sequence[tuple[CoreferenceItem, ...]]) -> Draft[FamilyCoreferenceItem]:
    """The draft of sets of a made dataset, which must not be published."""
    items = [item for sides in pairs for item in sides]
    write_dataset(folder, {"type2": items}, redistributable=False)
    return family_sets.draft(read_annotated(folder), name="made-families", limit=None)


def test_pairs_of_another_dataset_become_sets(tmp_path: Path) -> None:
    wanted = (
        ("The guard told the nurse that ", "nominative", " carries the keys.", " carry the keys."),
        ("The guard thanked the nurse who had found ", "accusative", ".", "."),
        ("The guard asked the nurse to open ", "possessive_dependent", " locker.", " locker."),
    )
    pairs = [pair(before, case, after) for before, case, after, _ in wanted]  # type: ignore[arg-type]
    draft = sets_from(tmp_path / "made", pairs)
    sets = sets_of(draft)
    assert list(sets) == [sides[0].pair_id for sides in pairs]
    for (before, case, after, after_they), sides in zip(wanted, pairs, strict=True):
        for member in sets[sides[0].pair_id]:
            form = pronoun_families()[member.family].forms[case]  # type: ignore[index]
            assert member.sentence == f"{before}{form}{after_they if member.family == 'they' else after}"
            assert (member.pronoun_case, member.referent, member.cluster) == (case, "guard", sides[0].cluster)
            assert [*member.problems()] == []
    assert len({member.template_id for members in sets.values() for member in members}) == len(pairs)
    assert (draft.publish_refusal, draft.rejects) == ("the licence forbids it", ())
    assert (draft.sources[0].name, draft.sources[0].redistributable) == ("made", False)


NOMINATIVE = pair("The guard thanked the nurse, since ", "nominative", " was late.")
REJECTED: dict[str, tuple[CoreferenceItem, ...]] = {
    "not_minimal_pair": (
        NOMINATIVE[0],
        replace(NOMINATIVE[1], sentence=NOMINATIVE[1].sentence.replace("late", "early")),
    ),
    "unsettled_case": tuple(
        replace(side, pronoun_case=None) for side in pair("The guard met the nurse after ", "nominative", " left.")
    ),
    "one_pronoun": pair("The guard thanked the nurse for his help, since ", "nominative", " was late."),
    "plural_pronoun": pair("The guard thanked the nurse for seeing them, since ", "nominative", " was late."),
    "pronoun_case_error": pair("The guard greeted the nurse and praised ", "accusative", " work."),
    "plural_reading": pair("The guard and the nurse left, since ", "nominative", " was late."),
    "plural_verb_unknown": pair("The guard thanked the nurse, since ", "nominative", " yodelt."),
    "plural_verb_unknown before the pronoun": pair("The guard told the nurse how late was ", "nominative", " needed."),
}


def test_a_pair_that_code_cannot_make_a_set_of_is_rejected(tmp_path: Path) -> None:
    sound = pair("The guard met the nurse before ", "nominative", " left.")
    draft = sets_from(tmp_path / "made", [*REJECTED.values(), sound])
    assert [(reject.rule, reject.candidate, reject.source_row) for reject in draft.rejects] == [
        (rule.split()[0], side.sentence, f"made 1.0.0: {side.item_id}") for rule, (side, _) in REJECTED.items()
    ]
    assert {reject.rule for reject in draft.rejects} <= {known.name for known in draft.reject_rules}
    assert [*sets_of(draft)] == [sound[0].pair_id]


@pytest.mark.slow
def test_the_command_builds_the_sets_of_a_dataset(tmp_path: Path) -> None:
    write_dataset(tmp_path / "made", {"type2": [*NOMINATIVE, *REJECTED["one_pronoun"]]})
    (tmp_path / "made" / "LICENSE").write_text("a notice")

    def build(*arguments: str, status: int = 0) -> str:
        build = ("-m", "builders.synthbias", "--source", "families", *arguments)
        return commands.output_of(*build, cwd=tmp_path, status=status)

    built = build("--with", "made")
    assert "made-families 1.0.0 from source families:" in built
    assert "type2/test: 11 rows, 1 sets" in built
    assert "rejected made 1.0.0: " in built
    folder = tmp_path / "out" / "datasets" / "made-families"
    assert (folder / "LICENSE").read_text() == "a notice"
    assert "--with takes no --seed" in build("--with", "made", "--seed", "1", status=1)
    assert "--name: is for the csv source, and for families --with alone" in build("--name", "other", status=1)
