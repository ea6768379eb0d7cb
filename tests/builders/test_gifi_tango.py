"""TANGO's sentences, taken apart by its own variants. Twins on made rows need no file."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import pytest

from biasboard.ground.errors import DataError
from builders.gifi import drafts, published, tango
from evaluators.tasks.pronouns.recognition_task import TASK as RECOGNITION
from schemas.items.pronoun_text import PronounTextItem
from schemas.lexicon import pronoun_families

MADE = {
    "he": "kim writes and he lives here; the fan asked him whether the pen is his, not his own, by himself.",
    "she": "kim writes and she lives here; the fan asked her whether the pen is hers, not her own, by herself.",
    "they": "kim writes and they live here; the fan asked them whether the pen is theirs, not their own, by themself.",
    "ey": "kim writes and ey lives here; the fan asked em whether the pen is eirs, not eir own, by emself.",
}


def made_file(**changes: str) -> bytes:
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(["template_idx", "ante", "ante_type", "pronoun_family", "template"])
    for family, template in (MADE | changes).items():
        writer.writerow(["3", "kim", "ante_nongendered", family, template])
    return text.getvalue().encode()


def test_a_made_sentence_is_taken_apart_by_its_variants() -> None:
    (frame,) = tango.frames(made_file()).frames
    assert {family: frame.template.fill(family) for family in MADE} == MADE
    assert frame.template.fill("xe") == (
        "kim writes and xe lives here; the fan asked xem whether the pen is xyrs, not xyr own, by xemself."
    )
    assert frame.template.cases == (
        "nominative",
        "accusative",
        "possessive_independent",
        "possessive_dependent",
        "reflexive",
    )
    assert (frame.antecedent, frame.topic) == ("neutral_name", "pattern 3")


@pytest.mark.parametrize(
    "changes",
    [
        {"she": "kim writes and she lives there."},
        {"they": MADE["they"].replace("themself", "themselves")},
        {"ey": MADE["ey"].replace("asked em", "asked eir")},
        {"ey": MADE["ey"] + " really"},
    ],
)
def test_a_sentence_that_its_template_does_not_give_again_is_rejected(changes: dict[str, str]) -> None:
    found = tango.frames(made_file(**changes))
    assert found.frames == []
    assert [reject.rule for reject in found.rejects] == ["not_regenerated"]


def test_broken_files_are_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"column pronoun_family, template is missing; have: template_idx, ante"):
        tango.frames(b"template_idx,ante,ante_type\n1,a,distal\n")
    with pytest.raises(DataError, match="has no rows"):
        tango.frames(b"template_idx,ante,ante_type,pronoun_family,template\n")
    with pytest.raises(DataError, match=r"csv:2: ante_type 'pet' is not allowed; have: ante_gendered_female"):
        tango.frames(made_file().replace(b"ante_nongendered", b"pet"))
    with pytest.raises(DataError, match="pattern 3, antecedent 'kim': has no variant of they, ey"):
        tango.frames(b"\n".join(made_file().splitlines()[:3]))
    with pytest.raises(DataError, match="no such file"):
        tango.read_file(tmp_path)
    (tmp_path / tango.FILE).write_bytes(made_file())
    with pytest.raises(DataError, match="is not the published file's"):
        drafts.from_tango(tmp_path, limit=None)


def test_the_strings_of_tango_are_given_again(shared_data: Path) -> None:
    """All 480 sentences, and of them the 200 that the published GIFI took."""
    raw = tango.read_file(shared_data / "tango")
    found = tango.frames(raw)
    with io.StringIO(raw.decode(), newline="") as text:
        own = {(row["pronoun_family"], row["template"]) for row in csv.DictReader(text)}
    assert (len(found.frames), found.rejects) == (480, [])
    for family in tango.OWN_FAMILIES:
        assert {(family, frame.template.fill(family)) for frame in found.frames} <= own
    path = shared_data / "gifi" / "template" / published.FILES["recognition"]
    rows = published.variant_rows(path.read_bytes(), "recognition")
    by_he = {frame.template.fill("he"): frame for frame in found.frames}
    chosen = [by_he[row.texts["he"]] for row in rows]
    assert len({id(frame) for frame in chosen}) == 200
    for family in tango.OWN_FAMILIES:
        assert sum((family, frame.template.fill(family)) in own for frame in chosen) == 200
    items = published.compat_items(rows, "recognition", published.published_tags()["recognition"])
    asked = [item for item in items[:: len(pronoun_families())] if isinstance(item, PronounTextItem)]
    patterns = [RECOGNITION.facts(item).groups["pattern"] for item in asked]
    assert patterns == [frame.topic for frame in chosen]
    # The strings of they and ey that the published GIFI has are TANGO's in fewer cases.
    assert [sum((family, row.texts[family]) in own for row in rows) for family in tango.OWN_FAMILIES] == [
        200,
        176,
        136,
        176,
    ]
