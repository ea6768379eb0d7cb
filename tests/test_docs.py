"""What the documents name exists, and what exists is documented."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pandas as pd
import pytest
import typer
import yaml
from markdown.extensions.toc import slugify

import biasboard
from biasboard.ground.kinds import BACKENDS, SCORERS, TASKS
from evaluators.runs.measure.measuring import metric_definitions
from evaluators.task import load_task
from tests.commands import REPOSITORY, run
from tests.reference import MODULES, PAGE, application, render_page, subcommands_of

COMMAND_LINES = ("biasboard", *MODULES)
PLACES = re.compile(r"(?:schemas|builders|evaluators|leaderboard|biasboard|site|tests|\.ci|\.github)/[\w./-]*")


def documents() -> dict[str, str]:
    """The hand-written documents; the page of reference is compared with the commands as a whole."""
    roots = [REPOSITORY / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md")]
    paths = roots + sorted((REPOSITORY / "site/docs").rglob("*.md"))
    return {str(path.relative_to(REPOSITORY)): path.read_text(encoding="utf-8") for path in paths if path != PAGE}


def code_lines() -> list[tuple[str, str]]:
    """Document and line of inline code and of code blocks, continued lines joined, prompts and comments dropped."""
    found = []
    for document, text in documents().items():
        blocks = re.findall(r"^```[^\n]*\n(.*?)^```", text, flags=re.MULTILINE | re.DOTALL)
        lines = [line for block in blocks for line in block.replace("\\\n", " ").splitlines()]
        lines += re.findall(r"`([^`\n]+)`", re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL))
        found += [(document, line.removeprefix("$ ").partition("  #")[0].strip()) for line in lines]
    return found


def complaint(line: str) -> str | None:
    """What a command line would say against a documented command, parsed but not run; None if nothing."""
    words = shlex.split(line)
    if "-m" in words:
        module, *arguments = words[words.index("-m") + 1 :]
    else:
        module, *arguments = words
    if module.partition(".")[0] not in ("schemas", "builders", "evaluators", "leaderboard", "biasboard"):
        return None
    if module not in COMMAND_LINES:
        return f"{line}: there is no python -m {module}; have: {', '.join(COMMAND_LINES)}"
    command = typer.main.get_command(application(module))
    while (subcommands := subcommands_of(command)) and arguments and not arguments[0].startswith("-"):
        if arguments[0] not in subcommands:
            return f"{line}: '{arguments[0]}' does not exist; have: {', '.join(sorted(subcommands))}"
        command = subcommands[arguments[0]]
        arguments = arguments[1:]
    # A command without its arguments is a name, not something to type.
    if not arguments or arguments[0] in ("--help", "--version", "--install-completion", "--show-completion"):
        return None
    try:
        command.make_context(module, arguments)
    except Exception as error:
        # typer raises its own copies of click's exceptions; all of them are complaints about the words.
        return f"{line}: {getattr(error, 'format_message', error.__str__)()}"
    return None


def python_commands(lines: list[str]) -> Iterator[str]:
    for line in lines:
        match = re.search(r"(?:\S*python[\d.]*|\$\(RUN\)) -m .*|^biasboard(?: .*|$)", line)
        if match is not None:
            yield match[0].split(" && ")[0].split(" > ")[0]


@pytest.mark.slow
def test_documented_commands_are_understood(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    commands = [(document, line) for document, text in code_lines() for line in python_commands([text])]
    assert len(commands) >= 5
    complaints = [f"{document}: {said}" for document, line in commands if (said := complaint(line)) is not None]
    assert complaints == []
    for line, said in {
        "python -m evaluators run --dataset out": "Missing option",
        "python -m builders.none": "there is no python -m builders.none",
        "biasboard build synthbias --limits 20": "No such option",
        "biasboard build walk": "'walk' does not exist; have:",
    }.items():
        assert said in str(complaint(line))


def test_the_makefile_calls_commands_that_are_understood() -> None:
    for target, n_commands in (("demo", 4), ("serve", 1)):
        words = ["make", "--dry-run", target, "MODEL=org/name"]
        done = subprocess.run(words, cwd=REPOSITORY, capture_output=True, text=True, check=True)
        commands = list(python_commands(done.stdout.splitlines()))
        assert len(commands) == n_commands
        assert [said for line in commands if (said := complaint(line)) is not None] == []


def test_documented_make_targets_and_places_exist() -> None:
    makefile = (REPOSITORY / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"^([a-z-]+):.*## ", makefile, flags=re.MULTILINE))
    named = [
        (document, target)
        for document, text in code_lines()
        for target in re.findall(r"(?:^|\s)make(?: [A-Z]+=\S+)* ([a-z-]+)", text)
    ]
    assert [(document, target) for document, target in named if target not in targets] == []
    made = ("site/_build", "site/_docs", "leaderboard/results")
    places = {(document, text) for document, text in code_lines() if PLACES.fullmatch(text)}
    assert len(places) >= 5
    # A name in capitals stands for one of the reader's choice.
    free = re.compile(rf"({'|'.join(made)}).*|.*[A-Z]{{4}}.*")
    assert [one for one in sorted(places) if not free.fullmatch(one[1]) and not (REPOSITORY / one[1]).exists()] == []


def test_the_reference_is_what_the_commands_say_and_the_guide_names_each() -> None:
    assert PAGE.read_text(encoding="utf-8") == render_page(), "the commands changed; run: make reference"
    door = subcommands_of(typer.main.get_command(application("biasboard")))
    guide = documents()["site/docs/commands.md"]
    assert [name for name in door if f"(reference.md#biasboard-{name})" not in guide] == []


def test_links_between_the_pages_lead_to_a_heading() -> None:
    pages = {path.name: path.read_text(encoding="utf-8") for path in (REPOSITORY / "site/docs").glob("*.md")}
    heading = r"^#+ (.*?)(?: \{: #([\w-]+) \})?$"
    anchors = {
        name: {own or slugify(title, "-") for title, own in re.findall(heading, text, flags=re.MULTILINE)}
        for name, text in pages.items()
    }
    links = [(name, *link) for name in pages for link in re.findall(r"\]\(([\w-]+\.md)?#([\w-]+)\)", pages[name])]
    assert [(name, target, anchor) for name, target, anchor in links if anchor not in anchors[target or name]] == []


def test_the_site_has_seven_entries_and_the_last_lists_each_of_its_pages() -> None:
    nav = yaml.safe_load((REPOSITORY / "site/mkdocs.yml").read_text(encoding="utf-8"))["nav"]
    entries = ["Board", "Benchmarks", "Models", "Papers", "Compare", "Answers", "Docs"]
    assert [next(iter(entry)) for entry in nav] == entries
    (landing, *groups) = nav[-1]["Docs"]
    pages = [page for group in groups for listed in group.values() for entry in listed for page in entry.items()]
    handwritten = {path.name for path in (REPOSITORY / "site/docs").glob("*.md")}
    assert {page for _, page in pages} >= handwritten - {"index.md", *landing.values()}
    text = (REPOSITORY / "site/docs" / next(iter(landing.values()))).read_text(encoding="utf-8")
    assert re.findall(r"^- \[(.*?)\]\((.*?)\): ", text, flags=re.MULTILINE) == pages


def test_the_guide_opens_with_what_takes_a_minute() -> None:
    opening = documents()["site/docs/reading.md"].partition("\n## In one minute\n")[2].partition("\n## ")[0]
    # People read about 250 words a minute.
    assert 100 < len(opening.split()) <= 250


def test_every_command_and_option_explains_itself_as_lists_of_commands_do() -> None:
    compared, silent = 0, []
    for module in COMMAND_LINES:
        command = typer.main.get_command(application(module))
        whole = subcommands_of(command)
        for name, part in (whole or {module: command}).items():
            # Arguments of typer have help as well; the generated --help and --version need none from us.
            options = [option.name for option in part.params if not getattr(option, "help", "")]
            silent += [f"{module} {name} {one}" for one in ([] if part.help else ["itself"]) + options]
        if hasattr(command, "lists_only"):
            command.lists_only = True
            for name, listed in subcommands_of(command).items():
                assert listed.help == " ".join(whole[name].help.split("\n\n")[0].split()), f"{module} {name}"
                compared += 1
    assert silent == []
    assert compared >= 10


def test_every_plugin_and_metric_is_documented() -> None:
    of_benchmarks = ("coreference", "pronouns", "labels", "images", "labelled_text", "own_questions", "own_prompts")
    pages = (*of_benchmarks, "scoring")
    text = "".join(documents()[f"site/docs/{page}.md"] for page in pages)
    names = [*BACKENDS.names(), *SCORERS.names(), *TASKS.names()]
    for task in TASKS.names():
        names += [metric.name for metric in metric_definitions(task)]
        # Prompts that differ in their examples alone are documented by their protocol.
        prompts = load_task(task).prompts.values()
        names += {str(one.id if one.n_examples is None else one.protocol) for one in prompts}
    assert len(names) >= 15
    assert [name for name in names if not is_named(name, text)] == []


def is_named(name: str, text: str) -> bool:
    """Return True if a text names a metric, task or prompt whole, or a metric by its measure and its ending."""
    ends = [place for place, character in enumerate(name) if character == "_"]
    return f"`{name}`" in text or any(f"`{name[:end]}`" in text and f"`{name[end:]}`" in text for end in ends)


@pytest.mark.slow
def test_the_metric_of_the_guide_works_as_it_stands(tmp_path: Path) -> None:
    guide = (REPOSITORY / "CONTRIBUTING.md").read_text(encoding="utf-8")
    (source,) = re.findall(r"```python\n(.*?)```", guide, flags=re.DOTALL)
    folder = tmp_path / "evaluators" / "tasks"
    folder.mkdir(parents=True)
    (folder / "guide_metrics.py").write_text(source, encoding="utf-8")
    program = (
        "from evaluators.runs.measure.measuring import compute_metrics\n"
        "from tests.leaderboard.synthetic import leaning, make_records\n"
        "metrics = compute_metrics(make_records(leaning(1.0, 0.5)), 'coreference')\n"
        "print([m.value for m in metrics if m.name == 'referent_first_rate' and not m.group])\n"
    )
    done = run("-c", program, BIASBOARD_PLUGINS=tmp_path)
    assert done.stderr == ""
    (value,) = json.loads(done.stdout)
    assert 0 <= value <= 1


def test_the_lines_of_the_guide_give_what_the_paper_of_winogender_prints(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    guide = (REPOSITORY / "site" / "docs" / "own_questions.md").read_text(encoding="utf-8")
    (source,) = re.findall(r"```python\n(.*?)```", guide, flags=re.DOTALL)
    # Of each occupation: its share of women, whether a sentence with she and with he is read as being about it.
    said = {"plumber": (5, False, True), "baker": (60, True, True), "nurse": (90, True, False)}
    rows = [
        {
            "item": f"{occupation}.client.{answer}.{gender}.txt",
            "group_category": occupation,
            "group_group": gender,
            "choice": None if answer == 1 and gender == "neutral" else (occupation if is_occupation else "client"),
        }
        for occupation, (_, *read) in said.items()
        for answer in (0, 1)
        # What the second sentence says is the same with each pronoun.
        for gender, is_occupation in zip(("female", "male", "neutral"), (*read, False), strict=True)
        for is_occupation in [is_occupation if answer == 0 else True]
    ]

    class Score:
        def items(self) -> pd.DataFrame:
            return pd.DataFrame(rows)

    lines = [f"{occupation}\t{share}\n" for occupation, (share, *_) in said.items()]
    (tmp_path / "occupations-stats.tsv").write_text("occupation\tbls_pct_female\n" + "".join(lines), encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(biasboard, "score", lambda *arguments, **options: Score())
    exec(compile(source, "own_questions.md", "exec"), {})
    # Differences of -.5, 0 and .5 beside 5, 60 and 90: 42.5 / sqrt(.5 * 3716.67).
    assert capsys.readouterr().out == (
        "read in two ways: 0.333 of 6 pairs; correlation with the share of women: 0.99\n"
    )
