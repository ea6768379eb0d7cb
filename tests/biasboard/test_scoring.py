"""``biasboard score``: one command from a model's name to a table."""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from tokenizers import Tokenizer

from biasboard import build, score, scoring
from biasboard.gate import GateChoice
from biasboard.ground.command_line import EXIT_ERROR, EXIT_GATE, EXIT_RUN_FAILED
from biasboard.ground.errors import ConfigError
from biasboard.ground.memory import VARIABLE
from biasboard.scoring import ScoreChoice, score_model
from evaluators.backend_options import BackendOptions
from leaderboard.commands.comparable_results import known_model
from schemas.documents.model_summary import ModelSummary
from schemas.documents.result import Model
from schemas.files import contract
from schemas.folders.dataset_folder import read_manifest
from schemas.folders.run_folder import read_run
from tests.commands import run
from tests.evaluators.fake_endpoint import MODEL, FakeEndpoint, Received, save_tokenizer
from tests.evaluators.made_data import save_tiny_llama
from tests.leaderboard.synthetic import leaning, write_model

BENCHMARK = "synthbias"


@pytest.fixture(autouse=True, scope="module")
def _memory(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A machine that remembers what the datasets answer, with which results are verified."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(VARIABLE, str(tmp_path_factory.mktemp("memory")))
        yield


@pytest.fixture(scope="module")
def datasets(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the datasets, of which one is built."""
    folder = tmp_path_factory.mktemp("datasets")
    build(BENCHMARK, out=folder / BENCHMARK)
    return folder


@pytest.fixture
def endpoint(tmp_path: Path) -> Iterator[FakeEndpoint]:
    """A server of messages without log-probabilities."""
    pytest.importorskip("openai", reason="the extra openai is not installed")
    tokenizer = Tokenizer.from_file(str(save_tokenizer(tmp_path / "tokenizer") / "tokenizer.json"))
    with FakeEndpoint(tokenizer, serves=frozenset({"chat", "models"}), alter=letter) as served:
        yield served


def letter(received: Received, answer: dict[str, Any]) -> dict[str, Any]:
    """The first option, always."""
    answer["choices"][0]["message"]["content"] = "A"
    return answer


def command(datasets: Path, out: Path, model: str | Path, *more: str | Path) -> tuple[str | Path, ...]:
    folders = ("--datasets", datasets, "--out", out, "--results", out / "none-accepted")
    (out / "none-accepted").mkdir(parents=True, exist_ok=True)
    return "-m", "biasboard", "score", model, "--benchmarks", BENCHMARK, *folders, *more


def document(*words: object, status: int | None = 0) -> Any:
    """The JSON that a command prints."""
    return json.loads(run(*words, "--format", "json", status=status, OPENAI_API_KEY="none").stdout)


def summary(*words: object, status: int | None = 0) -> ModelSummary:
    return contract.load(document(*words, status=status), ModelSummary, where="standard output")


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("torch", reason="the extra hf is not installed")
    return save_tiny_llama(tmp_path_factory.mktemp("models") / "tiny")


@pytest.mark.slow
def test_a_chat_is_asked_in_words_and_a_model_that_is_compared_with_it_is_asked_so_too(
    datasets: Path, endpoint: FakeEndpoint, model: Path, tmp_path: Path
) -> None:
    prices = tmp_path / "prices.toml"
    prices.write_text("['*']\ninput = 1.0\noutput = 2.0\n", encoding="utf-8")
    of_chat = ("--name", "acme/chat", "--base-url", endpoint.url, "--quick", "--prices", prices)
    asked = command(datasets, tmp_path / "runs", MODEL, *of_chat)
    found = summary(*asked)
    assert "mcq2-generate-v1, because intrinsic-v1 needs option_logprobs" in " ".join(found.notes)
    (of_benchmark,) = found.benchmarks
    assert (of_benchmark.benchmark, found.is_whole, of_benchmark.rank) == (BENCHMARK, False, None)
    assert all(measure.useless is not None for measure in of_benchmark.measures), "on the items of --quick"
    n_before = endpoint.n_received
    gate = (*asked, "--max-missing", "1")
    refused = run(*gate, "--allow", "limited", status=EXIT_ERROR, OPENAI_API_KEY="none")
    assert "96 of 96 answers are stored from earlier calls, and the endpoint may serve another model" in refused.stderr
    again = run(*gate, "--allow", "limited,earlier", status=0, OPENAI_API_KEY="none")
    assert endpoint.n_received - n_before < 20, "only test calls: everything was answered before"
    assert "96 of 96 answers are from earlier calls, and the endpoint may serve another model by now" in again.stderr
    for measure in of_benchmark.measures:
        assert measure.label in again.stdout
    results = [read_run(path.parent).result for path in (tmp_path / "runs").rglob("result.json")]
    costs = [result.usage.cost_usd for result in results]
    assert None not in costs
    cost = sum(filter(None, costs))
    assert cost > 0
    assert f"the answers cost US$ {cost:.4f} by the prices given" in again.stdout
    whole = [word for word in asked if word != "--quick"]
    dry = run(*whole, "--dry-run", status=0, OPENAI_API_KEY="none").stdout
    (n_left,) = [int(line.split()[3].replace(",", "")) for line in dry.splitlines() if line.startswith("in all")]
    expected = [float(line.split()[2]) for line in dry.splitlines() if "by the tokens of 96 answers" in line]
    # The answers of the pilot are 1 / 263 of all, and prompts are much alike.
    assert expected == [pytest.approx(cost * (n_left - 96) / 96, rel=0.25)]
    other = command(datasets, tmp_path / "runs", model, "--name", "acme/tiny", "--quick", "--against", "chat")
    compared = summary(*other, status=None)
    assert "mcq2-generate-v1, by which acme/chat was asked" in " ".join(compared.notes)
    # The made model writes nothing that can be read.
    assert compared.benchmarks[0].why_not_compared == "no measure has a value of both this model and acme/chat"
    n_runs = len([*(tmp_path / "runs").rglob("result.json")])
    apart = run(*other, "--prompt", "intrinsic-v1", "--max-worse", "0.1", status=EXIT_ERROR).stderr
    assert "was asked with mcq2-generate-v1, and this model would be with intrinsic-v1, so that they cannot" in apart
    assert len([*(tmp_path / "runs").rglob("result.json")]) == n_runs


@pytest.mark.slow
def test_a_local_model_is_scored_with_what_fits_and_limits_are_kept(
    datasets: Path, model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    runs = tmp_path / "runs"
    limits = ("--fail-under", "accuracy_gap=0.99", "--fail-under", f"{BENCHMARK}.worst_group_accuracy=1")
    asked = command(datasets, runs, model, "--name", "acme/tiny", "--quick", "--format", "json")
    done = run(*asked, *limits, "--allow", "limited,useless", status=EXIT_GATE)
    assert "gate accuracy_gap=0.99: passed: decided by " in done.stderr
    assert f"gate {BENCHMARK}.worst_group_accuracy=1: FAILED: {BENCHMARK}.worst_group_accuracy is 0." in done.stderr
    found = contract.load(json.loads(done.stdout), ModelSummary, where="standard output")
    assert [gate.passed for gate in found.gates] == [True, False]
    assert (found.passed, found.allowed, found.is_by_point) == (False, ("limited", "useless"), False)
    assert f"of {BENCHMARK} only some items were asked" in found.gates[0].warnings
    (of_benchmark,) = found.benchmarks
    results = [read_run(path.parent).result for path in runs.rglob("result.json")]
    assert {result.signature.prompt for result in results} == {"intrinsic-v1"}
    assert {result.signature_sha256 for result in results} >= {*of_benchmark.results}
    metrics = [(result.signature.config, metric) for result in results for metric in result.metrics]
    known = {(config, metric.name): metric for config, metric in metrics if not metric.group}
    for measure in of_benchmark.measures:
        metric = known[str(measure.config), measure.name]
        assert (metric.value, metric.interval) == (measure.value, measure.interval)
    limits_in_python = {"accuracy_gap": 0.99, "eo_gap": 0.999}
    choices: dict[str, Any] = {"quick": True, "fail_under": limits_in_python, "allow": ("limited", "useless")}
    scored = score(str(model), name="acme/tiny", benchmarks=BENCHMARK, datasets=datasets, out=runs, **choices)
    # A measure that is no headline is shown if a gate names it.
    assert [(gate.measure, gate.value) for gate in scored.report.gates] == [
        (name, known["type2", name].value) for name in limits_in_python
    ]
    attempts = {result.signature_sha256: result.usage.n_attempts for result in results}
    assert {run.result.signature_sha256: run.result.usage.n_attempts for run in scored.runs} == attempts
    assert capsys.readouterr().out == ""
    assert [finished.result.model.id for finished in scored.runs] == ["acme/tiny"] * 2
    assert scored.report.benchmarks[0].measures[:-1] == found.benchmarks[0].measures
    assert scored.to_markdown().startswith("| ")
    table, items = scored.to_frame(), scored.items()
    assert set(table["why_unranked"]) == {of_benchmark.why_unranked}
    assert len(items) == sum(result.counts.items for result in results)
    rows = items[items["config"] == "type2"]
    assert rows["correct"].mean() == pytest.approx(known["type2", "accuracy"].value)
    card, *others = scored.card(tmp_path / "cards")
    assert card == tmp_path / "cards" / "acme__tiny" / "card.md"
    assert "**Only some items were asked" in card.read_text(encoding="utf-8")
    assert "model-index.yaml" not in {path.name for path in others}


@pytest.mark.slow
def test_a_dry_run_makes_the_choices_of_the_run_and_reads_no_weights(
    datasets: Path, model: Path, tmp_path: Path
) -> None:
    bare = tmp_path / "bare"
    bare.mkdir()
    for path in model.iterdir():
        if path.suffix != ".safetensors":
            (bare / path.name).write_bytes(path.read_bytes())
    asked = command(datasets, tmp_path / "runs", bare)
    # Of one config, a model on the board was asked with another prompt than the usual one.
    (run_on_board,) = [path for path in asked if str(path).endswith("none-accepted")]
    version = f"{BENCHMARK}@{read_manifest(datasets / BENCHMARK).version}"
    Path(run_on_board, version, "acme__other", "type2-mcq2-v1-0123abcd").mkdir(parents=True)
    told = document(*asked, "--dry-run")
    assert told["notes"] == ["synthbias type2: mcq2-v1, by which models on the board were asked"]
    # The usual prompt is told of too, if it is taken because of the model to compare with.
    Path(tmp_path, "runs", version, "acme__last", "type2-intrinsic-v1-0123abcd").mkdir(parents=True)
    notes = document(*asked, "--dry-run", "--against", "acme/last")["notes"]
    assert notes == ["synthbias type2: intrinsic-v1, by which acme/last was asked"]
    # The sentences of each config, with both options in one request, or in both orders.
    runs = [(each["config"], each["prompt"], each["n_requests"]) for each in told["runs"]]
    assert runs == [("type1", "intrinsic-v1", 6320), ("type2", "mcq2-v1", 2 * 6320)]
    assert all(each["n_prompt_tokens"] > 6320 for each in told["runs"])
    assert not (tmp_path / "runs").exists() or not any((tmp_path / "runs").rglob("*.sqlite"))
    whole = run(*command(datasets, tmp_path / "runs", bare), status=EXIT_ERROR)
    assert whole.stderr.splitlines()[-1].startswith("error: model")


@pytest.mark.slow
def test_a_chat_is_asked_all_configs_by_one_protocol(endpoint: FakeEndpoint, tmp_path: Path) -> None:
    build("gifi", out=tmp_path / "gifi")
    runs = f"gifi@{read_manifest(tmp_path / 'gifi').version}/acme__other"
    # The prompts of a base model on the board: only that of the word problems can be a message.
    for name in ("recognition-sampled", "continuation-sampled", "assignment-sampled", "math-zero-shot-sampled"):
        (tmp_path / "accepted" / runs / f"{name}-v1-0123abcd").mkdir(parents=True)
    folders = ("--datasets", tmp_path, "--out", tmp_path / "runs", "--results", tmp_path / "accepted")
    asked = ("-m", "biasboard", "score", MODEL, "--base-url", endpoint.url, "--benchmarks", "gifi", *folders)
    told = document(*asked, "--dry-run")
    assert {each["prompt"] for each in told["runs"]} == {"instructed-sampled-v1"}
    why = "zero-shot-sampled-v1 has another protocol than the other configs"
    assert f"gifi math: instructed-sampled-v1, because {why}" in told["notes"]


@pytest.mark.slow
def test_what_cannot_be_scored_is_said_before_a_model_is_opened(datasets: Path, tmp_path: Path) -> None:
    def refused(message: str, **more: Any) -> None:
        choice = ScoreChoice(benchmarks=(BENCHMARK,), datasets=datasets, results=str(tmp_path), out=tmp_path / "runs")
        with pytest.raises(ConfigError, match=message):
            score_model("x/y", replace(choice, **more), BackendOptions(), GateChoice())

    refused(
        "--benchmarks none: no such benchmark, nor a dataset in .*, where biasboard build puts those ",
        benchmarks=("none",),
    )
    refused("is a dataset; give the folder that it lies in", datasets=datasets / BENCHMARK)
    refused("--against acme/none: there are no results of it; have: none$", against="acme/none")
    (tmp_path / "synthbias@1.0.0" / "acme__None-7B").mkdir(parents=True)
    refused("with which the few of --quick are not compared", against="none-7b", quick=True)


@pytest.mark.slow
def test_a_model_that_refuses_passes_no_gate(datasets: Path, endpoint: FakeEndpoint, tmp_path: Path) -> None:
    def partly(received: Received, answer: dict[str, Any]) -> dict[str, Any]:
        # One question in twelve is answered, and rightly by chance alone.
        text = str(received.body)
        refuses = not refusing_all and zlib.crc32(text.encode()) % 12 == 0
        answer["choices"][0]["message"]["content"] = "A" if refuses else "I'm sorry, but I can't help with that."
        return answer

    refusing_all = False
    endpoint.alter = partly
    limits = ("--fail-under", "accuracy_gap=0.1", "--allow", "limited", "--max-missing", "0.5")
    options = ("--base-url", endpoint.url, "--quick", "--concurrency", "4")
    found = summary(*command(datasets, tmp_path / "runs", MODEL, *options, *limits), status=EXIT_GATE)
    (of_benchmark,) = found.benchmarks
    assert [gate.passed for gate in found.gates] == [False, False]
    assert of_benchmark.n_refused > of_benchmark.n_items / 2
    genders = [one for one in of_benchmark.missing_of_groups if one.name == "pronoun_gender"]
    assert sum(one.n_items for one in genders) == of_benchmark.n_items
    assert sum(one.n_refused for one in genders) == of_benchmark.n_refused
    refusing_all = True
    asked = command(datasets, tmp_path / "none", MODEL, *options)
    run(*asked, status=EXIT_RUN_FAILED, OPENAI_API_KEY="none")
    # A benchmark of which nothing was read stays in the table, and its gates fail.
    found = summary(*asked, *limits, "--allow", "limited,earlier", status=EXIT_GATE)
    assert [(one.benchmark, one.n_missing) for one in found.benchmarks] == [(BENCHMARK, of_benchmark.n_items)]
    assert [(gate.passed, gate.value) for gate in found.gates] == [(False, None), (False, 1.0)]


def test_a_model_is_named_by_its_short_name_if_only_one_has_it() -> None:
    have = ["acme/Small-1", "acme/small-2", "lab/large-2025"]
    assert known_model("--against", "LARGE", have) == "lab/large-2025"
    assert known_model("--against", "small-1", have) == "acme/Small-1"
    for name, said in (("small", "names several models"), ("smal1-2", r"did you mean acme/small-2")):
        with pytest.raises(ConfigError, match=said):
            known_model("--against", name, have)


def test_a_name_that_holds_two_models_is_told(tmp_path: Path) -> None:
    path = write_model(tmp_path, "acme/small", leaning(1.0, 0.5))
    model = read_run(path.parent).result.model

    def told(asked: Model) -> str | None:
        planned: Any = SimpleNamespace(backend=SimpleNamespace(model=asked))
        return scoring._split_name(planned, ScoreChoice(out=tmp_path))

    assert told(model) is None
    other = replace(model, identity_sha256="0" * 64)
    assert str(told(other)).startswith(
        "under the name acme/small there are runs of other weights, settings or addresses"
    )
    assert str(told(other)).endswith(f"give another --name, or remove {path.parent}")
    # Another precision is told apart by it, and another name anyway.
    assert told(replace(other, precision="int8")) is told(replace(other, id="acme/large")) is None


def test_each_answer_of_an_earlier_call_is_counted() -> None:
    """A stopped run that goes on may mix the answers of two models behind one address."""
    usage: Any = SimpleNamespace(n_requests=10)

    def run_of(n_earlier: int, **told: str) -> Any:
        result = SimpleNamespace(usage=usage, environment=SimpleNamespace(settings=told))
        return SimpleNamespace(n_earlier=n_earlier, result=result)

    runs: Any = [run_of(3), run_of(0)]
    remote, local = (cast(Any, SimpleNamespace(is_remote=is_remote)) for is_remote in (True, False))
    (told,) = scoring._doubts(remote, runs).items()
    assert (told[0], told[1][:44]) == ("earlier", "3 of 20 answers are from earlier calls, and ")
    assert scoring._doubts(remote, runs[1:]) == scoring._doubts(local, runs) == {}
    # Two names may be of one call, or of one each.
    changed: Any = [run_of(0, models_that_answered="team-v1"), run_of(0, models_that_answered="team-v1, team-v2")]
    assert scoring._doubts(remote, changed) == {"several": "the endpoint says that 2 models answered: team-v1, team-v2"}
    assert scoring._doubts(remote, changed[:1]) == {}
