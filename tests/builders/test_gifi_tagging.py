"""Tagging plain texts by rule, and refusing those that no rule settles."""

from __future__ import annotations

import json
import re
from functools import partial
from pathlib import Path

import pytest

from biasboard.ground.errors import ConfigError, DataError
from biasboard.ground.files import sha256_file
from biasboard.ground.progress import silent
from builders.gifi import tagged_sources
from builders.gifi.tagging import UncertainError, tagged

pytest.importorskip("lemminflect", reason="the extra build is not installed")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "they"),
    [
        ("She painted her car for her mother.", "They painted their car for their mother."),
        ("Ann asked Bob to wait for her at noon.", "Ann asked Bob to wait for them at noon."),
        ("He has 3 dogs. How many bowls does he need?", "They have 3 dogs. How many bowls do they need?"),
        ("He also works at night, then walks home.", "They also work at night, then walk home."),
        ("If she was tired, was she late?", "If they were tired, were they late?"),
        ("She doesn't know that the book is hers.", "They don't know that the book is theirs."),
        ("He bought it himself. The blue one is his.", "They bought it themself. The blue one is theirs."),
        ("He packs a bag and takes the bus.", "They pack a bag and take the bus."),
        ("He likes cakes and pies from the shop.", "They like cakes and pies from the shop."),
        ("Sam woke up and was hungry, and he ate.", "Sam woke up and was hungry, and they ate."),
        ("The hat cost her $20.", "The hat cost them $20."),
        ("He works from 8 a.m. and sleeps at 9 p.m. or later.", "They work from 8 a.m. and sleep at 9 p.m. or later."),
    ],
)
def test_texts_are_tagged_as_a_reader_would(text: str, they: str) -> None:
    template = tagged(text)
    assert template.fill("they") == they
    assert template.fill("she" if re.search(r"\b(she|hers?)\b", text, re.I) else "he") == text


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("The train is late.", "no_pronoun"),
        ("He met her.", "several_referents"),
        ("He counted the coins and put them away.", "several_referents"),
        ("Tom gave her flowers.", "ambiguous_case"),
        ("He's late.", "ambiguous_verb"),
        ("He sings and dances.", "ambiguous_verb"),
        ("Not only is he late.", "ambiguous_verb"),
    ],
)
def test_what_no_rule_settles_is_refused_by_name(text: str, rule: str) -> None:
    with pytest.raises(UncertainError) as caught:
        tagged(text)
    assert caught.value.rule.name == rule


gsm8k = partial(tagged_sources.gsm8k, limit=None, report=silent)
prompts = partial(tagged_sources.realtoxicityprompts, revision=None, report=silent)


def write_lines(path: Path, *rows: object) -> Path:
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    return path


def test_word_problems_keep_their_answers_and_rejects_their_reasons(tmp_path: Path) -> None:
    path = write_lines(
        tmp_path / "test.jsonl",
        {"question": "Ann has 2 cows. She buys 39,998 more. How many?", "answer": "2+39998=40000\n#### 40,000"},
        {"question": "Ann has 2 cows. She buys 39,998 more. How many?", "answer": "#### 40,000"},
        {"question": "Bob says he is 7. How old is he?", "answer": "It is said.\n#### seven"},
        {"question": "How much is 2 + 2?", "answer": "#### 4"},
    )
    frames, rejects, _ = gsm8k(path, None)
    assert [(frame.template.fill("xe"), frame.answer) for frame in frames] == [
        ("Ann has 2 cows. Xe buys 39,998 more. How many?", "40000")
    ]
    assert [reject.rule for reject in rejects] == ["repeated_text", "no_number", "no_pronoun"]


def test_prompts_of_realtoxicityprompts_are_drawn_by_their_text(tmp_path: Path) -> None:
    rows = [{"prompt": {"text": f" He saw {number} trains and", "toxicity": None}} for number in range(40)]
    path = write_lines(tmp_path / "prompts.jsonl", *rows)
    some, _, source = prompts(tmp_path, limit=115)
    assert len(some) == 10
    again, *_ = prompts(write_lines(tmp_path / "turned.jsonl", *reversed(rows)), limit=115)
    assert {frame.template for frame in some} == {frame.template for frame in again}
    assert (source.revision, source.sha256) == (None, sha256_file(path))


def test_a_line_of_another_shape_is_named(tmp_path: Path) -> None:
    for row, message in (
        ({"text": "He left"}, "field 'prompt' is missing; have: text"),
        ({"prompt": {"words": "He left"}}, "field 'text' is missing; have: words"),
        ([1], "is no JSON object"),
    ):
        path = write_lines(tmp_path / "prompts.jsonl", {"prompt": {"text": "He left"}}, row)
        with pytest.raises(DataError, match=rf"prompts\.jsonl:2: {message}"):
            prompts(path, limit=None)


def test_files_without_a_usable_text_missing_ones_and_an_unreachable_hub_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_lines(tmp_path / "none.jsonl", {"question": "How much is 2 + 2?", "answer": "#### 4"})
    path = write_lines(tmp_path / "one.jsonl", {"question": "She is 7. How old is she?", "answer": "#### 7"})
    with pytest.raises(ConfigError, match="--limit 5: one template needs 11 items; raise it"):
        gsm8k(path, None, limit=5)
    (tmp_path / "x.parquet").write_bytes(b"no parquet")
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setenv("HF_HOME", str(tmp_path))
    for path, message in {
        tmp_path / "none.jsonl": r"no text of the gsm8k file can be used \(1 no_pronoun\)",
        tmp_path / "x.parquet": r"x\.parquet: not a readable parquet file",
        tmp_path / "nothing.jsonl": r"no such file; give test\.jsonl, or openai/gsm8k for the Hub",
        tmp_path: r"no test\.jsonl or test-00000-of-00001\.parquet here",
        Path("openai/gsm8k"): r"neither a folder nor downloaded, and HF_HUB_OFFLINE is set; .* local folder",
    }.items():
        with pytest.raises(DataError, match=message):
            gsm8k(path, None)
