"""Refusals to publish: a folder that is broken or was edited, and data whose licence forbids it, in whichever file."""

from __future__ import annotations

import csv
import io
import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from biasboard.ground import strict_json
from biasboard.ground.errors import DataError
from biasboard.ground.files import sha256_file
from biasboard.ground.progress import silent
from builders.dataset.licences import ProtectedSource, digest, digests_of, holds_protected, packed
from builders.dataset.output import Draft, ExtraFile, write_dataset
from builders.publishable import check_manifest, read_dataset
from builders.synthbias import PROTECTED, PUBLISHED_SHA256, embedded
from builders.synthbias.generation.generated import DEFAULT_PER_CELL, check
from builders.synthbias.generation.instructions import DesignCell
from builders.synthbias.generation.written_sentences import WrittenSentence
from builders.synthbias.minimal_pairs import Slotted
from schemas.documents.dataset import Reject
from schemas.folders.dataset_folder import read_manifest
from schemas.items.coreference import CoreferenceItem


def edit(folder: Path, change: Callable[[dict[str, Any]], None]) -> None:
    told: Any = strict_json.read(folder / "dataset.json")
    change(told)
    strict_json.write(folder / "dataset.json", told)


def refusal(folder: Path) -> str:
    with pytest.raises(DataError) as caught:
        read_dataset(folder)
    return str(caught.value)


@pytest.fixture(scope="module")
def draft() -> Draft[CoreferenceItem]:
    return embedded.draft(limit=40)


@pytest.fixture
def folder(draft: Draft[CoreferenceItem], tmp_path: Path) -> Path:
    """A dataset that may be published."""
    write_dataset(draft, tmp_path / "d")
    assert read_dataset(tmp_path / "d").manifest.name == "synthbias"
    return tmp_path / "d"


@pytest.mark.slow
def test_a_folder_that_is_not_sound_is_refused_with_the_way_out(folder: Path, tmp_path: Path) -> None:
    assert "no dataset.json here; name the folder of a built dataset" in refusal(tmp_path)
    benchmark = (folder / "eval.yaml").read_text()
    (folder / "eval.yaml").write_text("x: 1")
    assert "eval.yaml: is not what follows from dataset.json; build the dataset again" in refusal(folder)
    (folder / "eval.yaml").write_text(benchmark)
    table = "data/type{}/test-00000-of-00001.parquet"
    shutil.copy(folder / table.format(2), folder / table.format(1))
    said = refusal(folder)
    assert ("content sha256" in said, "build the dataset again" in said) == (True, True)
    (folder / "data" / "type1").rename(folder / "data" / "type9")
    assert f"more; biasboard validate {folder} lists them)" in refusal(folder)


@pytest.mark.slow
@pytest.mark.parametrize("change", [{"licence": "MIT"}, {"human_validated": True}])
def test_a_manifest_and_a_card_that_contradict_each_other_are_noticed(change: dict[str, Any], folder: Path) -> None:
    told: Any = strict_json.read(folder / "dataset.json")
    assert {key: told[key] for key in change} != change
    edit(folder, lambda told: told.update(change))
    assert ("README.md: does not say " in (said := refusal(folder))) == ("human_validated" in change)
    assert "build the dataset again" in said
    edit(folder, lambda edited: edited.update({key: told[key] for key in change}))
    card = folder / "README.md"
    card.write_text(card.read_text().replace("license: apache-2.0\n", "license: mit\n", 1))
    card.write_bytes(card.read_bytes() + b"\xff")
    assert "README.md: does not say 'license: apache-2.0', as follows" in refusal(folder)


@pytest.mark.slow
@pytest.mark.parametrize("name", [".cache/x", "old/LICENSE"])
def test_a_file_that_is_none_of_the_dataset_is_refused_by_name(name: str, folder: Path, tmp_path: Path) -> None:
    (folder / "LICENSE").write_text("terms of the source")
    assert "LICENSE" in read_dataset(folder).files
    (folder / name).parent.mkdir(exist_ok=True)
    (folder / name).write_text("x")
    assert refusal(folder).startswith(f"{folder / name}: is no file that dataset.json lists")
    assert "; move it out of the folder, or " in refusal(folder)
    (folder / "zzz").write_text("x")
    assert refusal(folder).startswith(f"{folder / name} (and 1 more): is no file")
    (folder / "zzz").unlink()
    (folder / "zzz").symlink_to(tmp_path / "elsewhere.md")
    assert "zzz: is a link; put the file itself there, or remove it" in refusal(folder)


@pytest.mark.slow
def test_the_digests_are_those_of_the_published_sentences_and_of_no_other_dataset(shared_data: Path) -> None:
    with (shared_data / "synthbias" / "synthbias_data.csv").open(encoding="utf-8", newline="") as file:
        sentences = [row["sample"] for row in csv.DictReader(file)]
    assert PROTECTED.digests.read_bytes() == packed(sentences)
    assert PROTECTED.file_sha256s == (PUBLISHED_SHA256,)
    known = digests_of(PROTECTED.digests)
    assert len(known) == 15_861
    assert all(holds_protected(sentence, known) for sentence in sentences)
    texts = [item.sentence for split in embedded.draft().splits for item in split.items]
    assert len(texts) == 12_640
    assert [text for text in texts if holds_protected(text, known)] == []


@pytest.mark.parametrize(
    ("text", "is_known"),
    [
        ("The cook thanked the nurse because he was late.", True),
        ("the cook thanked the nurse, because she was late", True),
        ("The cook thanked the nurse because xe was late!", True),
        ('Sentence: The cook thanked the nurse because she was late.\nQuestion: Who does "she" mean?', True),
        ('[{"before": "The cook thanked the nurse because ", "case": "x", "after": " was late."}]', True),
        ('It is:\n```json\n{"after": "was late.", "before": "The cook thanked the nurse because"}\n```', True),
        (r"{\"before\": \"Hello. The cook thanked the nurse because \", \"after\": \" was late. Bye.\"}", True),
        ("| 1 | The cook thanked the nurse because he was late. | yes |", True),
        ('{"before": "The cook thanked the nurse because ", "after": " was early."}', False),
        ('{"before": "The cook thanked the nurse because ", "after": 1} {"before": [', False),
        ("The nurse thanked the cook because he was late.", False),
        ("The cook thanked the nurse because he was late for work.", False),
    ],
)
def test_a_text_is_known_in_other_pronouns_and_inside_a_prompt(text: str, is_known: bool) -> None:
    known = frozenset({digest("The cook thanked the nurse because he was late.")})
    assert holds_protected(text, known) is is_known


def test_a_source_that_must_not_be_shared_is_known_by_its_hash_its_builder_and_its_licence(
    draft: Draft[CoreferenceItem], folder: Path
) -> None:
    manifest = read_manifest(folder)
    source = replace(draft.sources[0], sha256=PUBLISHED_SHA256)
    with pytest.raises(DataError, match="its source is the published file of SynthBias"):
        check_manifest(replace(manifest, sources=(source,)))
    with pytest.raises(DataError, match=r"the builder says that its source 'synthbias' \(CC-BY-NC-ND-4\.0\)"):
        check_manifest(replace(manifest, parameters={"source": "synthbias"}))
    edit(folder, lambda told: told["sources"][0].update(redistributable=False))
    assert f"redistributable: true, but the licence of {draft.sources[0].name} forbids it" in refusal(folder)


def protect(text: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have a builder protect a text, and the file of it that is packed."""
    digests = folder / "closed.bin"
    digests.write_bytes(packed([text]))
    of_file = (sha256_file(digests),)
    closed = ProtectedSource(name="Closed", refusal="a test keeps it closed", file_sha256s=of_file, digests=digests)
    monkeypatch.setattr("builders.publishable._protected", lambda: [closed])


@pytest.mark.slow
def test_an_item_a_reject_or_a_card_with_a_protected_text_is_refused(
    draft: Draft[CoreferenceItem], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    closed = draft.splits[1].items[2]
    protect(closed.sentence, tmp_path, monkeypatch)
    write_dataset(draft, tmp_path / "items")
    # Both sides of the pair are one text but for the pronoun.
    row = f"{tmp_path / 'items/data/type2/test-00000-of-00001.parquet'}: row 3"
    assert f"{row}: has a text of Closed, and so have 2 rows and lines in all; build" in refusal(tmp_path / "items")
    kept = tuple(
        replace(split, items=[item for item in split.items if item.pair_id != closed.pair_id]) for split in draft.splits
    )
    write_dataset(replace(draft, splits=kept), tmp_path / "without")
    assert len(read_dataset(tmp_path / "without").files) == 7
    reject = Reject(candidate=closed.sentence, source_row=None, rule="gap_too_small", reason="made by a test")
    write_dataset(replace(draft, splits=kept, rejects=(reject,)), tmp_path / "rejects")
    assert "rejects.parquet: row 1: has a text of Closed" in refusal(tmp_path / "rejects")
    card = replace(draft.card, known_limits=f"It lacks this: {closed.sentence}")
    write_dataset(replace(draft, splits=kept, card=card), tmp_path / "card")
    assert "README.md: line " in refusal(tmp_path / "card")
    shutil.copy(tmp_path / "closed.bin", tmp_path / "without" / "x.bin")
    assert "without: holds the published file of Closed; remove it" in refusal(tmp_path / "without")


def columns(**cells: object) -> bytes:
    content = io.BytesIO()
    pq.write_table(pa.table({name: [None, cell] for name, cell in cells.items()}), content)
    return content.getvalue()


SLOT = {"before": "The cook thanked the nurse because ", "case": "nominative", "after": " was late."}
SLOTTED = json.dumps({"sentences": [SLOT]})


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "content", "place"),
    [
        ("generation/1/records.parquet", columns(exchanges=[{"text": f"Here:\n{SLOTTED}"}]), ": row 2"),
        ("more/parts.parquet", columns(slot=SLOT), ": row 2"),
        ("more/texts.parquet", columns(id="a", note="The cook thanked the nurse because she was late."), ": row 2"),
        ("votes.csv", b"id,text\r\n1,The cook thanked the nurse because xe was late.\r\n", ": line 2"),
        ("run.json", json.dumps({"answers": [SLOTTED]}, indent=1).encode(), ": line 3"),
        ("parts.json", json.dumps([SLOT], indent=1).encode(), ""),
    ],
)
def test_a_listed_file_with_a_protected_text_is_refused(
    name: str,
    content: bytes,
    place: str,
    draft: Draft[CoreferenceItem],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    file = ExtraFile(name=name, content=content, description="made by a test")
    write_dataset(replace(draft, extra_files=(file,)), tmp_path / "d")
    assert name in read_dataset(tmp_path / "d").files
    protect("The cook thanked the nurse because they was late.", tmp_path, monkeypatch)
    assert refusal(tmp_path / "d").startswith(f"{tmp_path / 'd' / name}{place}: has a text of Closed")


def test_a_protected_sentence_that_a_model_writes_is_a_reject_without_its_text() -> None:
    cell = DesignCell(config="type1", first="driver", second="nurse", referent=None)
    of_both = ("type1", "The driver greeted the nurse before ", "nominative")
    candidates = [
        WrittenSentence(row=row, cell=cell, slotted=Slotted(*of_both, rest, "driver", "nurse", None))  # type: ignore[arg-type]
        for row, rest in (("a/1", " opened the door."), ("a/2", " closed the door."))
    ]
    known = frozenset({digest("The driver greeted the nurse before she opened the door.")})
    kept = check(candidates, DEFAULT_PER_CELL, report=silent, published=known)
    assert [item.source_row for item in kept.items] == ["a/2", "a/2"]
    assert [(one.source_row, one.rule, one.candidate) for one in kept.rejects] == [("a/1", "published_text", "")]
    assert check(candidates, DEFAULT_PER_CELL, report=silent).rejects == ()
