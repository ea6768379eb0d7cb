"""Every kind of page and file of a built site, with names and texts that strangers chose to do harm."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from playwright.sync_api import Browser

from biasboard.ground import strict_json
from leaderboard.pages.dataset_views import built_datasets, kept_keys
from leaderboard.verify.entries import Entry, LeftOut, Match
from leaderboard.verify.submissions import read_register
from schemas.documents.board import Acceptance
from schemas.documents.dataset import Manifest, RuleCount, Source
from schemas.files import contract
from tests.evaluators.made_data import made_items, write_dataset
from tests.leaderboard import synthetic
from tests.leaderboard.browsing import Opened, settle, visit_all
from tests.leaderboard.forging import accepted
from tests.leaderboard.gifi_results import chance, write_gifi_model
from tests.leaderboard.made_keys import write_keys
from tests.worlds import MadeBoard, render

pytestmark = [pytest.mark.browser, pytest.mark.slow]

ACTS = '<img src=x onerror="window.taken=1"></pre></td></script><script>window.taken=1</script>'
MARKUP = (
    "**b** [l](javascript:window.taken=1) ![p](http://evil.test/p.png) `c` | # $ <!-- x --> {{ 7*7 }} {% raw %} ${7*7} "
    "<%= 7*7 %> {: onclick=alert(1) } <!-- generated: profile -->"
)
NAMES = {
    "html": f"evil/{ACTS}",
    "markup": f"evil/{MARKUP}",
    "bidi": "evil/\u202egnp.\u2066exe\u200b\u00ad\u2028\ufeffa",
    "formula": "=cmd|' /C calc'!A0",
    "tex": 'evil/\\input{/etc/passwd} } @misc{x, \\write18{id} %$&#^~"',
}
STRANGE = re.compile(r"evil|window\.taken|calc")
"""Words in all of them, which no escaping changes."""
UNSEEN = re.compile("[\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]")
TEXT = f"{ACTS} {NAMES['markup']} \u202eturned\u2066 \x1b[31m"
CONTACT = "contact-that-nobody-may-see"


def run(root: Path, name: str, model_id: str, **fields: Any) -> Path:
    """The folder of a result, whose name is plain or as hostile as the model's."""
    of_name = synthetic.leaning(0.5 + 2 * chance(model_id), chance(model_id, "bias"))
    records = synthetic.make_records(fields.pop("probability", of_name))
    result = synthetic.make_result(records, model_id, **fields)
    environment = replace(result.environment, platform=TEXT[:150], device=TEXT[:80], packages={TEXT[:60]: TEXT[:60]})
    return synthetic.write_result(
        root / name, replace(result, environment=environment, command=f"run {TEXT}"), records
    ).parent


def turning(item: Any) -> list[str]:
    return [f"he left. {TEXT}"]


def write_results(results: Path, runs: Path) -> None:
    for kind, model_id in NAMES.items():
        run(runs, f"synthbias/{model_id.replace('/', '__')}", model_id)
        write_gifi_model(runs / "gifi", model_id, 0.5, tasks=("recognition",), n_templates=4, told=turning)
        place = f"synthbias@9.0.0/{kind}"
        folder = run(results, place, f"{model_id}!", prompt="mcq2-v1")
        (folder / "submission.json").write_text(json.dumps({"contact": f"{CONTACT} {ACTS}", "model_card": ACTS}))
        decision = {"decision": "withdrawn", "reason": TEXT, "decided": "2026-02-02"} if kind == "html" else {}
        accepted(results, place, "2026-01-01", **decision)
        run(runs, f"unknown/{kind}", model_id, dataset_version="8.0.0")
    for ambiguous in (False, True):
        synthetic.write_model(runs, "baseline/uniform", synthetic.uniform, ambiguous=ambiguous, endpoint="baseline")
    for name, probability in (("one", synthetic.leaning(2.0, 0.1)), ("two", synthetic.leaning(0.1, 0.9))):
        run(runs, f"again-{name}", f"{NAMES['html']}?", probability=probability)


def write_hostile_dataset(folder: Path) -> None:
    """A dataset under the name of the results, whose manifest and card are made to do harm."""
    write_dataset(folder, {"type2": made_items(4)}, name="synthbias")
    source = Source(
        name=TEXT, address="javascript:window.taken=1", revision=TEXT, sha256=None, licence=TEXT, redistributable=True
    )
    rule = RuleCount(rule="rule", n=1, description=TEXT)
    path = folder / "dataset.json"
    told = contract.load(strict_json.read(path), Manifest, where="test")
    told = replace(told, title=TEXT, builder=f"builders.{TEXT}", parameters={TEXT: TEXT, "source": TEXT})
    sources = (source, replace(source, address=f"https://evil.test/{TEXT}"))
    rejects = (rule, replace(rule, rule="other", description=NAMES["formula"]))
    manifest = replace(told, sources=sources, rejects=rejects, flags=(rule,))
    manifest = replace(manifest, generator_model=TEXT, licence=NAMES["formula"])
    strict_json.write(path, contract.dump(manifest))
    sections = "".join(f"## {heading}\n\n{TEXT}\n\n* {ACTS}\n\n" for heading in ("Data statement", "Known limits"))
    (folder / "README.md").write_text(f"# {TEXT}\n\n{sections}", encoding="utf-8")


def changed(entry: Entry, accepted: Mapping[str, Acceptance]) -> Entry:
    # Accepted results are verified in processes of their own, which would refuse the names.
    if (decision := accepted.get(entry.place)) is not None:
        entry = replace(entry, origin="accepted", acceptance=decision)
    return replace(entry, match=Match("unknown", TEXT)) if entry.place.startswith("unknown/") else entry


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("hostile")
    write_results(root / "results", root / "runs")
    write_hostile_dataset(root / "datasets" / "made")
    register = read_register(root / "results")
    decisions = {one.place: one for one in register.results}
    found = MadeBoard(root / "runs", root / "results", any_name=True).entries
    view = MadeBoard(
        *(changed(entry, decisions) for entry in found),
        left_out=[LeftOut(f"synthbias/{name}", "accepted", f"{name}: {TEXT}") for name in NAMES.values()],
        built=built_datasets(root / "datasets"),
        register=register,
        keys=kept_keys(write_keys(root / "keys", root / "runs")),
    ).view
    return render(view, root, with_parquet=True)


def kinds_of_pages(built: Path) -> dict[str, list[str]]:
    """The pages of the site by their kind."""
    found: dict[str, list[str]] = {}
    for path in sorted(built.rglob("*.html")):
        place = path.relative_to(built)
        kind = place.parts[0] if len(place.parts) > 1 and place.name != "index.html" else place.as_posix()
        found.setdefault(kind, []).append(place.as_posix())
    return found


SEEN = """() => {
  document.querySelectorAll("details").forEach((one) => { one.open = true; });
  return {
    taken: window.taken ?? null,
    text: document.body.innerText + "\\n" + document.title,
    images: [...document.images].map((one) => one.src)
      .filter((one) => new URL(one).host !== location.host || !one.split("#")[0].endsWith(".svg")),
    scripts: [...document.scripts].filter((one) => /taken/.test(one.textContent)).length,
    handlers: [...document.querySelectorAll("*")].flatMap((one) => [...one.attributes])
      .filter((one) => one.name.startsWith("on")).map((one) => one.name),
    links: [...document.links].filter((one) => !/^https?:$/.test(one.protocol) || /evil/.test(one.hostname))
      .map((one) => one.href),
  };
}"""


def assert_inert(found: dict[str, Any], where: str) -> None:
    harm = {name: found[name] for name in ("taken", "images", "scripts", "handlers", "links") if found[name]}
    assert harm == {}, where
    assert UNSEEN.findall(found["text"]) == [], where
    assert "49" not in re.findall(r"evil/(\d+)", found["text"]), where


def test_nothing_acts_on_any_page(built: Path, browser: Browser, address: str) -> None:
    kinds = kinds_of_pages(built)
    assert {"index.html", "benchmarks", "models", "datasets", "audit.html"} <= set(kinds)
    assert len(kinds["models"]) > 2 * len(NAMES)
    # Pages without a word of a stranger, such as those of the documentation, are what they are on any site.
    paths = [path for paths in kinds.values() for path in paths if STRANGE.search((built / path).read_text("utf-8"))]
    assert len(paths) > len(kinds["models"]) + 8
    for path, found in visit_all(browser, address, paths):
        assert_inert(found.page.evaluate(SEEN), path)
        found.check(address)


TURNED = r"\u202egnp.\u2066exe\u200b\xad\u2028\ufeffa"


def test_nothing_acts_where_models_are_compared_answers_chosen_and_words_searched(opened: Opened) -> None:
    page = opened("compare.html")
    page.locator("[data-bb-verdict] p").first.wait_for()
    first = page.locator("select[name=model]").first
    names = first.locator("option").all_inner_texts()
    assert any(TURNED in name for name in names)
    for place in range(len(names)):
        first.select_option(index=place)
        settle(page)
        assert_inert(page.evaluate(SEEN), f"compare {names[place]}")
    page = opened("answers.html")
    models, tables = page.locator("select[name=model] option"), page.locator("select[name=table] option")
    models.first.wait_for(state="attached")
    names = models.all_inner_texts()
    assert any(TURNED in name for name in names)
    for place, name in enumerate(names):
        page.locator("select[name=model]").select_option(index=place)
        settle(page)
        for number in range(tables.count()):
            page.locator("select[name=table]").select_option(index=number)
            settle(page)
            others = page.locator("select[name=other]")
            if others.is_visible():
                others.select_option(index=min(2, others.locator("option").count() - 1))
                settle(page)
            assert_inert(page.evaluate(SEEN), f"answers {name}")
    page = opened()
    query = page.locator("input[data-md-component=search-query]")
    query.click(timeout=5_000)
    query.press_sequentially("evil")
    page.locator(".md-search-result__item").first.wait_for(timeout=10_000)
    assert_inert(page.evaluate(SEEN), "search")


def test_pictures_are_inert_even_when_they_are_opened_alone(built: Path, browser: Browser, address: str) -> None:
    pictures = sorted(path.relative_to(built).as_posix() for path in built.rglob("*.svg"))
    badges = [path for path in pictures if path.startswith("files/badges/")]
    charts = [path for path in pictures if path.startswith("charts/")]
    assert len(badges) >= len(NAMES)
    assert len(charts) >= len(NAMES)
    for path in (*badges, *charts):
        text = (built / path).read_text(encoding="utf-8")
        tree = ElementTree.fromstring(text)
        names = {element.tag.rpartition("}")[2] for element in tree.iter()}
        assert names.isdisjoint({"script", "image", "foreignObject", "a", "use", "iframe"}), path
        assert not UNSEEN.search("".join(tree.itertext())), path
        assert not [name for element in tree.iter() for name in element.attrib if name.startswith("on")], path
    for _, found in visit_all(browser, address, badges[:2]):
        assert found.page.evaluate("window.taken ?? null") is None
        assert len(found.requests) == 1


def test_no_file_holds_a_formula_a_command_or_an_odd_name_and_none_what_maintainers_are_told(built: Path) -> None:
    of_tables = sorted((built / "files").glob("*.csv"))
    assert {"audit", "datasets", "models"} <= {path.stem for path in of_tables}
    lines = (line for path in of_tables for line in csv.reader(io.StringIO(path.read_text(encoding="utf-8"))))
    cells = [cell for line in lines for cell in line]
    assert sum(cell.startswith("'=cmd|") for cell in cells) > 2 * 2
    formula = re.compile(r"[=+@\t\r\n\uff1d\uff0b\uff0d\uff20]|-(?!\d+(\.\d+)?(e-?\d+)?$)")
    assert [cell for cell in cells if formula.match(cell)] == []
    tables = [path.read_text(encoding="utf-8") for path in sorted(built.rglob("*.tex"))]
    assert any("etc/passwd" in text for text in tables)
    for text in tables:
        assert not re.search(r"\\(input|write|include|openout)\b", text)
        assert not UNSEEN.search(text)
    for path in sorted(built.rglob("*.bib")):
        text = path.read_text(encoding="utf-8")
        assert not UNSEEN.search(text)
        for entry in re.split(r"\n(?=@)", text.strip()):
            depths = [0]
            for one in re.sub(r"\\[{}]", "", entry):
                depths.append(depths[-1] + {"{": 1, "}": -1}.get(one, 0))
            assert min(depths) == 0
            assert depths[-1] == 0
    files = {path.relative_to(built).as_posix(): path for path in built.rglob("*") if path.is_file()}
    made = [name for name in files if name.startswith(("models/", "datasets/", "charts/", "files/"))]
    assert len(made) > 100
    assert [name for name in made if not re.fullmatch(r"[A-Za-z0-9_./-]+", name)] == []
    texts = [path for path in files.values() if path.suffix in (".html", ".json", ".csv", ".xml", ".tex", ".bib")]
    assert len(texts) > 100
    assert [path.name for path in texts if CONTACT in path.read_text(encoding="utf-8")] == []
