"""Chat templates are programs that come with a model: faulty and hostile ones, and those that leave out the prompt."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from biasboard.ground.errors import ConfigError
from evaluators.backend import GenerateRequest
from evaluators.models import chat_template
from evaluators.models.tokenizer import load_tokenizer
from evaluators.stores.store import store_key
from evaluators.task import prompt_of
from evaluators.tasks.coreference.coreference_task import TASK
from leaderboard.verify.verification import check_records
from schemas.folders.run_folder import StoredParts, read_result
from tests.evaluators.fake_endpoint import save_tokenizer
from tests.evaluators.invoking import evaluators
from tests.evaluators.made_data import made_items, save_tiny_llama, write_dataset
from tests.schemas import examples

USER = "{% for m in messages %}<u>{{ m['content'] | trim }}</u>{% endfor %}"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_tokenizer(tmp_path_factory.mktemp("tokenizer"), template=USER)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("template", "problem"),
    [
        ("{{ raise_exception('only for tools') }}", "fails: TemplateError: only for tools"),
        ("{{ ''.__class__.__mro__ }}", "fails: SecurityError"),
        # A single step of Python, which looks at no signal until it ends.
        ("{% set n = 10 ** (10 ** 10) %}{{ n }}", "did not end within 1 s"),
        ("{{ 'x' * 10 ** 11 }}", "takes more than 2 GiB of memory"),
        ("{{ messages[0].content * 99 }}{{ 'x' * 10 ** 7 }}", "makes 1"),
        ("Hello. Assistant:", "leaves out the prompt: all prompts give the same text"),
        ("{{ messages[0].content[:20] }}", "leaves out the prompt or a part of it"),
    ],
)
def test_a_template_that_cannot_be_used_is_one_line(
    folder: Path, template: str, problem: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chat_template, "_CPU_SECONDS", 1)
    for file in folder.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    (tmp_path / "chat_template.jinja").write_text(template, encoding="utf-8")
    with pytest.raises(ConfigError) as error:
        load_tokenizer(str(tmp_path), chat=True)
    assert str(error.value).startswith(f"the tokenizer's chat template {problem}")
    assert str(error.value).endswith("; leave out --chat, or name a --tokenizer with another template")
    assert "\n" not in str(error.value)
    load_tokenizer(str(tmp_path))


@pytest.mark.slow
def test_options_after_the_models_own_text_continue_its_message(folder: Path) -> None:
    question = GenerateRequest(prompt="Who left?", max_tokens=9)
    request = prompt_of(TASK, "cot-logprob-v1").following(question, " The nurse.")
    tokenizer = load_tokenizer(str(folder), chat=True)

    def ids(*texts: str) -> tuple[list[int], ...]:
        return tuple(tokenizer.pretrained(list(texts), add_special_tokens=False)["input_ids"])

    rows, count = tokenizer.rows(request), tokenizer.count_tokens([request])
    begun = "<u>Who left?</u> The nurse.\nAnswer:"
    assert not isinstance(rows, str)
    assert rows.ids == ids(f"{begun} A", f"{begun} B")
    assert count.n_prompt == len(ids(begun)[0])
    # As a message of the user, the same text is another question, whose answers begin without a space.
    asked = replace(request, n_begun=0)
    of_user = tokenizer.rows(asked)
    assert not isinstance(of_user, str)
    assert of_user.ids == ids(f"<u>{request.prompt}</u>A", f"<u>{request.prompt}</u>B")
    model = examples.result().model
    for template, n_keys in ((None, 1), ("0" * 64, 2)):
        named = replace(model, chat_template_sha256=template)
        assert len({store_key(named, one, with_facts=False) for one in (request, asked)}) == n_keys


@pytest.mark.slow
def test_a_chat_model_reasons_in_its_own_message_and_its_result_is_sound(tmp_path: Path) -> None:
    pytest.importorskip("torch", reason="the extra hf is not installed")
    model = save_tiny_llama(tmp_path / "model", positions=1024)
    (model / "chat_template.jinja").write_text(USER, encoding="utf-8")
    dataset = write_dataset(tmp_path / "data", {"type2": made_items(2)})
    options = ("--backend", "transformers", "--model", model, "--device", "cpu", "--out", tmp_path / "runs")
    ended = evaluators("run", *options, "--dataset", dataset, "--chat", "--prompt", "cot-logprob-v1")
    assert ended.exit_code == 0, ended.output
    (path,) = (tmp_path / "runs").rglob("result.json")
    (records,) = StoredParts(path.parent, read_result(path.parent))
    check_records(path, read_result(path.parent), records)
    assert {record.status for record in records} == {"scored"}
    assert {exchange.option_byte_counts for record in records for exchange in record.exchanges} == {(), (2, 2)}
