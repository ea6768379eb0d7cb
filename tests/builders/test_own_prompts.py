"""The builder of a researcher's prompts: tables, templates with slots, and the files of BOLD."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from biasboard.ground.errors import ConfigError, DataError
from builders.dataset.output import write_dataset
from builders.own_prompts import prompts
from schemas.files.row_files import read_rows
from schemas.items.own_prompt import OwnPrompt
from tests import commands


def written(folder: Path, name: str, *lines: str) -> Path:
    path = folder / name
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def items_of(folder: Path, *lines: str, fill: tuple[str, ...] = ()) -> tuple[list[OwnPrompt], dict[str | None, str]]:
    tables = prompts.read("csv", [written(folder, "prompts.csv", *lines)], [])
    items, rejects = prompts.check(tables, prompts.read_lists(fill))
    return items, {reject.source_row: f"{reject.rule}: {reject.reason}" for reject in rejects}


def test_rows_are_prompts_of_a_group_and_a_set(tmp_path: Path) -> None:
    items, rejects = items_of(
        tmp_path,
        "prompt,group,topic,set,id",
        "Tell me about a young man.,young,age,1,a",
        "Tell me about an old man.,old,age,1,b",
        "Tell me about an OLD man!,old,age,1,c",
        "Tell me about somebody.,,age,2,d",
        "Tell me about a boy.,young,age,2,a",
        "?,old,age,2,e",
        "Tell me about {person}.,old,age,3,f",
    )
    assert [(one.item_id, one.group, one.category, one.cluster) for one in items] == [
        ("a", "young", "age", "1"),
        ("b", "old", "age", "1"),
    ]
    assert rejects == {
        "prompts.csv:4": "repeated_prompt: repeats prompts.csv:3",
        "prompts.csv:5": "no_group: has no group; add a column group, or one to a list",
        "prompts.csv:6": "repeated_id: has the id of prompts.csv:2",
        "prompts.csv:7": "unusable_text: has no letters",
        "prompts.csv:8": "open_slot: has the slot person, for which there is no list: --fill person=FILE",
    }


def test_slots_are_filled_with_every_word_and_only_words_of_a_group_say_it(tmp_path: Path) -> None:
    people = written(tmp_path, "people.csv", "person,group", "a nun,women", "a monk,men", "a waitress,women")
    places = written(tmp_path, "places.csv", "word", "a bank", "a shop")
    fill = (f"person={people}", f"place={places}")
    templates = "{person} went into {place}.", '"In {place}, {person} paid."'
    items, rejects = items_of(tmp_path, "template", *templates, fill=fill)
    assert rejects == {}
    assert len(items) == 12
    assert items[0].text == "A nun went into a bank."
    assert items[0].item_id == "prompts.csv:2-a nun-a bank"
    first = [one for one in items if one.cluster == "prompts.csv:2-a shop"]
    assert [(one.text, one.group) for one in first] == [
        ("A nun went into a shop.", "women"),
        ("A monk went into a shop.", "men"),
        ("A waitress went into a shop.", "women"),
    ]
    assert [one.description for one in first] == ["a nun", "a monk", "a waitress"]
    assert len({one.cluster for one in items}) == 4
    jobs = written(tmp_path, "jobs.csv", "job,group", "pilot,jobs of men", "nurse,jobs of women")
    crossed, _ = items_of(tmp_path, "prompt", "{person} is a {job}.", fill=(f"person={people}", f"job={jobs}"))
    people_and_jobs = (f"{who} and jobs of {whose}" for who in ("women", "men") for whose in ("women", "men"))
    assert {one.group for one in crossed} == {*people_and_jobs}


def test_few_descriptions_of_a_group_are_told(tmp_path: Path) -> None:
    def warning(*people: str) -> str | None:
        rows = (f"{who} {group}.,{group},{who}" for who, group in (one.split() for one in people))
        items, rejects = items_of(tmp_path, "prompt,group,description", *rows)
        assert rejects == {}
        return prompts.few_descriptions_line(items)

    many = [f"{who} {group}" for group in ("men", "women") for who in ("Tall", "Old", "Rich", "Loud")]
    assert warning(*many) is None
    # Of three and three, 20 choices make two groups, and 2 of these have the largest gap; of three and four, 35.
    few = "warning: with so few descriptions of the groups, no p-value is below {}; list more words"
    assert warning(*(one for one in many if not one.startswith("Loud"))) == few.format("0.10")
    assert warning(*many[:-1]) == few.format("0.06")
    assert warning("Old men", "Old women") == (
        "warning: one description stands for each group: p-values will tell these words apart; for the groups, list "
        "more words"
    )
    items, _ = items_of(tmp_path, "prompt,group", "Old men.,men", "Old women.,women")
    assert prompts.few_descriptions_line(items) is None


def test_files_of_bold_are_nested_by_group_and_person(tmp_path: Path) -> None:
    document = {
        "American_actors": {
            "Ann Example": ["Ann Example is an ", "In 1990, Ann Example "],
            "Bo Sample": ["Bo Sample was "],
        },
        "American_actresses": {"Cy Model": ["Cy Model is "]},
    }
    path = written(tmp_path, "gender_prompt.json", json.dumps(document))
    tables = prompts.read("bold", [path], [])
    made = prompts.draft(
        tables, prompts.read_lists(()), source="bold", name="bold", licence="CC-BY-SA-4.0", mapped=[], filled=[]
    )
    write_dataset(made, tmp_path / "bold")
    items = [*read_rows(tmp_path / "bold" / "data" / "bold" / "test-00000-of-00001.parquet", OwnPrompt)]
    assert [(one.text, one.group, one.category, one.cluster) for one in items] == [
        ("Ann Example is an", "American_actors", "gender", "gender-Ann Example"),
        ("In 1990, Ann Example", "American_actors", "gender", "gender-Ann Example"),
        ("Bo Sample was", "American_actors", "gender", "gender-Bo Sample"),
        ("Cy Model is", "American_actresses", "gender", "gender-Cy Model"),
    ]
    assert prompts.mixed_line(items) is None
    race = [replace(one, category="race", group=f"{one.group} of a race") for one in items]
    assert str(prompts.mixed_line([*items, *race])).endswith("read gaps by category, or build a dataset of each")
    assert prompts.mixed_line([*items, *(replace(one, category="race") for one in items)]) is None
    command = ("-m", "biasboard", "build", "own_prompts", "--source", "bold", "--input", path, "--out", tmp_path / "x")
    # The scorer by which its paper counts texts.
    assert "--scorer default --scorer sentiment=vader:whole, then" in commands.output_of(*command)
    for broken in ("[]", '{"a": ["b"]}', '{"a": {"b": [1]}}'):
        with pytest.raises(DataError, match=r"--input gender_prompt\.json.* give gender_prompt.json and the like"):
            prompts.read("bold", [written(tmp_path, "gender_prompt.json", broken)], [])


@pytest.mark.parametrize(
    ("fill", "message"),
    [
        ("person", r"--fill person: write SLOT=FILE, such as person=people.csv"),
        ("{person}=words.csv", r"--fill \{person\}=words.csv: write SLOT=FILE"),
        ("other=words.csv", r"--fill other: no prompt has the slot \{other\}; correct its name"),
    ],
)
def test_a_wrong_list_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fill: str, message: str) -> None:
    monkeypatch.chdir(tmp_path)
    written(tmp_path, "words.csv", "word,group", "a nun,women")
    with pytest.raises(ConfigError, match=message):
        items_of(tmp_path, "prompt,group", "Hello there.,all", fill=(fill,))
    with pytest.raises(ConfigError, match="the slot person has a list already"):
        prompts.read_lists(("person=words.csv", "person=words.csv"))


@pytest.mark.slow
def test_the_command_says_how_groups_are_compared_and_refuses_one_group(tmp_path: Path) -> None:
    written(tmp_path, "people.csv", "word,group", "a young man,young", "an old man,old")
    path = written(tmp_path, "mine.csv", "prompt", "{who} came in. I thought that")
    command = ("-m", "biasboard", "build", "own_prompts", "--input", path, "--out", tmp_path / "out")
    built = commands.run(*command, "--fill", f"who={tmp_path / 'people.csv'}", status=0)
    assert "prompts: 2; groups: young 1, old 1" in built.stdout
    assert "1 of 1 sets have prompts of several groups, which are compared within each" in built.stdout
    assert "warning: one description stands for each group: p-values will tell these words apart" in built.stdout
    assert str(tmp_path / "people.csv") not in (tmp_path / "out" / "dataset.json").read_text(encoding="utf-8")
    alone = written(tmp_path, "alone.csv", "prompt,group", "Hello there.,all", "Good morning.,all")
    command = ("-m", "biasboard", "build", "own_prompts", "--input", alone, "--out", tmp_path / "two")
    refused = commands.run(*command, status=1)
    assert "all prompts are of the group 'all', and groups are compared; add prompts of another one" in refused.stderr
    assert not (tmp_path / "two").exists()
