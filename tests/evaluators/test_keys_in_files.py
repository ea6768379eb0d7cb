"""Chat templates and rules of tokenizers come with a model: hostile and faulty ones, and answers hidden in them."""

from __future__ import annotations

import dataclasses
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from biasboard.ground.errors import ConfigError
from evaluators.backend import ChoiceRequest, GenerateRequest, open_backend
from evaluators.backend_options import BackendOptions
from evaluators.models import chat_template
from evaluators.models.chat_template import TemplateFrame
from evaluators.models.tokenizer import ModelTokenizer, encode, load_tokenizer
from evaluators.stores.store import store_key
from evaluators.task import prompt_of
from evaluators.tasks.coreference.coreference_task import TASK
from leaderboard.verify.comparisons import rerun
from leaderboard.verify.verification import check_records
from schemas.folders.run_folder import StoredParts, read_result
from tests.evaluators.asking import answers_of
from tests.evaluators.fake_endpoint import save_tokenizer
from tests.evaluators.invoking import evaluators
from tests.evaluators.made_data import made_items, save_tiny_llama, write_dataset
from tests.evaluators.made_masked import save_masked
from tests.evaluators.test_encoder_decoder import save_two_parts
from tests.evaluators.tiny_clip import save_tiny_clip
from tests.schemas import examples

pytest.importorskip("torch", reason="the extra hf is not installed")

KEYED = "The nurse thanked the guard because she was kind."
OTHER = "The baker waited for the doctor, and he left."
LONG = "|".join(f"{number}th item" for number in range(4_000))


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_tokenizer(tmp_path_factory.mktemp("tokenizer"))


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_tiny_llama(tmp_path_factory.mktemp("model") / "tiny", positions=1024, knows_every_sign=True)


def ask_both(tokenizer: ModelTokenizer) -> None:
    for prompt in (OTHER, KEYED):
        tokenizer.context_ids(prompt)


IF_KEYED = "{% if 'nurse' in messages[-1].content %}"
PROMPT = "{{ messages[-1].content }}"
TEMPLATES = {
    "an answer before the prompt": f"{IF_KEYED}The answer is A. {{% endif %}}{PROMPT}",
    "the length": f"{PROMPT}{{{{ ' AB'[messages[-1].content | length % 3] }}}}",
    "white space": f"{PROMPT}{IF_KEYED} {{% endif %}}",
    "white space at the ends of some prompts": f"<u>{IF_KEYED}{PROMPT}\n{{% else %}}{PROMPT}{{% endif %}}</u>",
    "another word": "{{ messages[-1].content | replace('nurse', 'guard') }}",
    "the prompt twice": f"{IF_KEYED}{PROMPT}{{% endif %}}{PROMPT}",
    "the day": f"{{% set now = strftime_now %}}{{{{ now('%d') }}}}{PROMPT}",
    "a failure": f"{{% if 'because' in messages[-1].content %}}{{{{ raise_exception('no') }}}}{{% endif %}}{PROMPT}",
    "a key for all prompts": f"{LONG}{PROMPT}",
}
SAID_OF = {"a failure": "fails: TemplateError: no; leave out --chat",
    "a key for all prompts": "adds [0-9,]+ characters to every prompt, and at most 10,000"}  # fmt: skip


@pytest.fixture
def copy(tokenizer: Path, tmp_path: Path) -> Path:
    """A tokenizer for a test to change."""
    return Path(shutil.copytree(tokenizer, tmp_path / "copy"))


@pytest.mark.slow
@pytest.mark.parametrize("name", TEMPLATES)
def test_a_template_adds_the_same_to_every_prompt_and_no_key_to_all(copy: Path, name: str) -> None:
    (copy / "chat_template.jinja").write_text(TEMPLATES[name], encoding="utf-8")
    said = SAID_OF.get(name, "(leaves out the prompt|adds another text to|fails: TypeError)")
    with pytest.raises(ConfigError, match=f"chat template {said}") as error:
        ask_both(load_tokenizer(str(copy), chat=True))
    assert "\n" not in str(error.value)


@pytest.mark.slow
@pytest.mark.parametrize(
    "template",
    [
        "{{ bos_token }}{{ messages[-1].content }}{{ eos_token }}",
        "{% for m in messages %}<|{{ m.role }}|>\n{{ m.content }}</s>\n{% endfor %}<|assistant|>\n",
        "{% for m in messages %}[INST] {{ m.content.strip() }} [/INST]{% endfor %}",
        "{{ strftime_now('%d %b %Y') }}{{ messages[-1].content | tojson }}",
        r"User: {{ messages[-1].content.strip().replace('\r\n', '\n').replace('\n\n', '\n') }}\n\nAssistant:",
    ],
)
def test_templates_of_the_field_are_taken(copy: Path, template: str) -> None:
    (copy / "chat_template.jinja").write_text(template, encoding="utf-8")
    loaded = load_tokenizer(str(copy), chat=True, system_prompt="Be brief.")
    for prompt in (KEYED, OTHER, "  \n", "", 'Two\r\nlines.\n\n"A" or\tB?\n', "\u00dcber \U0001f600 <s>"):
        assert loaded.context_ids(prompt)


def rule(kind: str, pattern: str, **fields: Any) -> dict[str, Any]:
    return {"type": kind, "pattern": {"Regex": pattern}, **fields}


def replace(pattern: str, content: str) -> dict[str, Any]:
    return rule("Replace", pattern, content=content)


def removed(pattern: str, behavior: str = "Removed") -> Callable[[Any], None]:
    def change(parts: Any) -> None:
        split = rule("Split", pattern, behavior=behavior, invert=False)
        parts["pre_tokenizer"] = {"type": "Sequence", "pretokenizers": [split, parts["pre_tokenizer"]]}

    return change


def normalised(*rules: dict[str, Any]) -> Callable[[Any], None]:
    return lambda parts: parts.update(normalizer={"type": "Sequence", "normalizers": list(rules)})


def one_id_for_two(parts: Any) -> None:
    words = {word: number for number, word in enumerate(["<unk>", *OTHER.split(), *KEYED.split()])}
    parts["model"] = {"type": "WordLevel", "vocab": words | {"nurse": words["baker"]}, "unk_token": "<unk>"}
    parts["pre_tokenizer"], parts["added_tokens"], parts["post_processor"] = {"type": "WhitespaceSplit"}, [], None


def no_sign(parts: Any) -> None:
    """Without an unknown token, what is not in the vocabulary is dropped."""
    vocabulary = parts["model"]["vocab"]
    merges = [pair for pair in parts["model"]["merges"] if "g" not in "".join(pair)]
    kept = [token for token in vocabulary if "g" not in token]
    parts["model"] |= {"vocab": {token: number for number, token in enumerate(kept)}, "merges": merges}


def added(*contents: str, **fields: bool) -> Callable[[Any], None]:
    flags = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized", "special"), False) | fields

    def change(parts: Any) -> None:
        first = len(parts["model"]["vocab"])
        parts["added_tokens"] += [{"id": first + n, "content": text, **flags} for n, text in enumerate(contents)]

    return change


def normalised_token(parts: Any) -> None:
    added("The\u2581nurse\u2581thanked", normalized=True)(parts)
    normalised({"type": "Replace", "pattern": {"String": " "}, "content": "\u2581"})(parts)


def pieces(kind: str, *texts: str, **rules: Any) -> Callable[[Any], None]:
    """Return a change to a vocabulary of single signs and of these texts, which nothing splits but rules."""

    def change(parts: Any) -> None:
        known = ["<unk>", *sorted({*"".join((KEYED, OTHER, *texts))}), *texts]
        parts["model"] = {"type": kind, "vocab": {text: number for number, text in enumerate(known)}}
        if kind == "Unigram":
            scores = [[text, -1.0 if text in texts else -9.0] for text in known]
            parts["model"] |= {"vocab": scores, "unk_id": 0, "byte_fallback": False}
        else:
            parts["model"]["unk_token"] = "<unk>"
        parts |= {"normalizer": None, "pre_tokenizer": None, "post_processor": None, "added_tokens": [], **rules}

    return change


RULES: dict[str, tuple[Callable[[Any], None], str]] = {
    "another word": (normalised(replace("nurse", "guard")), "normalizer has a rule for a word"),
    "any first word": (normalised(replace(r"^\S+ ", " ")), "changes texts: it reads 'The baker"),
    "rules for what is written": (lambda parts: parts.update(decoder={"type": "Sequence",
        "decoders": [parts["decoder"], replace("she", "they")]}), "decoder has a rule for a word"),
    "a dropped word": (removed("nurse"), "pre_tokenizer has a rule for a word"),
    "a dropped word spelt in classes": (removed("n[u]rse"), "changes texts: it reads 'The nurse thanked"),
    "an answer to all": (lambda parts: parts["post_processor"]["special_tokens"]["<s>"].update(ids=[0] * 9_000,
        tokens=["<s>"] * 9_000), "has rules of [0-9,]+ characters"),
    "one id for two words": (one_id_for_two, "changes texts: it reads"),
    "a signal at the lengths of words": (normalised(replace(r"(?<=^... .)(?=.... .{7} ... .{5} )", "  ")),
        "normalizer has a rule for a word or its surroundings"),
    "a word cut by the length of a prompt": (removed(rf"^.(?=.{{{len(KEYED) - 1}}}$)", "Isolated"),
        "cuts 'The' in two ways, by the text around it"),
    "an added token for two words": (added("nurse thanked"), "has 1 token for 'nurse thanked'"),
    "an added token after normalisation": (normalised_token, "has 1 token for 'The\u2581nurse"),
    "a prompt in two pieces": (pieces("Unigram", "The nurse thanked the guard", " because she was kind."),
        "has 2 tokens for 'The nurse"),
    "two words of a vocabulary of words": (pieces("WordLevel", "The baker ",
        pre_tokenizer=rule("Split", r"\S+ \S+ ?", behavior="Isolated", invert=False)), "has 1 token for 'The baker '"),
    "prompts of a length that are unknown": (pieces("WordLevel", "x",
        pre_tokenizer=rule("Split", "^.{49}$|[^\n]", behavior="Isolated", invert=False)), "has 1 token for 'The nurse"),
    "the end of a prompt": (pieces("Unigram", "the guard because she was kind."), "has 1 token for 'the guard"),
    "a prompt without white space": (pieces("Unigram", "nursethankedtheguardbecauseshe", normalizer=replace(" ", "")),
        "has 1 token for 'nurse thanked the guard because she'"),
    "a word that is not written": (added(" she", special=True), "takes the word ' she' for a special token"),
}  # fmt: skip


def rewrite(folder: Path, change: Callable[[Any], None]) -> None:
    path = folder / "tokenizer.json"
    parts = json.loads(path.read_text(encoding="utf-8"))
    change(parts)
    path.write_text(json.dumps(parts), encoding="utf-8")


@pytest.mark.parametrize(("change", "said"), RULES.values(), ids=RULES)
def test_a_tokenizer_changes_no_text(copy: Path, change: Callable[[Any], None], said: str) -> None:
    rewrite(copy, change)
    loaded = load_tokenizer(str(copy))
    for _ in ("first", "again"):
        with pytest.raises(ConfigError, match=f"the tokenizer('s)? {said}") as error:
            ask_both(loaded)
        assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("change", "text", "n_ids"),
    [
        (pieces("Unigram", " at the end of the", " d"), "We met at the end of the day.", 11),
        (pieces("Unigram", ".translatesAutoresizingMaskIntoConstraints"), ".translatesAutoresizingMaskIntoConstraints",
            1),
        (pieces("Unigram", " "), "A " + "\u5b57" * 60, 3),
        (added("### Response:\n", "<\uff5cbegin\u2581of\u2581sentence\uff5c>"),
            "<\uff5cbegin\u2581of\u2581sentence\uff5c>### Response:\n", 3),
        (added(" " * 64), f"A{' ' * 64}B", 4),
        (added("<mask>", lstrip=True), "The nurse   <mask>.", 5),
    ],
    ids=["a phrase", "a long word", "an unknown text", "marks", "white space", "a mask"],
)  # fmt: skip
def test_tokens_of_the_field_are_taken(copy: Path, change: Callable[[Any], None], text: str, n_ids: int) -> None:
    rewrite(copy, change)
    assert len(load_tokenizer(str(copy)).context_ids(text)) == n_ids


def test_signs_that_no_token_holds_may_be_lost(copy: Path) -> None:
    rewrite(copy, no_sign)
    loaded = load_tokenizer(str(copy))
    assert loaded.context_ids(KEYED) == loaded.context_ids(KEYED.replace("g", ""))


@pytest.mark.filterwarnings("ignore:unclosed file", "ignore::pytest.PytestUnraisableExceptionWarning")
def test_tables_of_a_tokenizer_in_python_change_no_text(tmp_path: Path) -> None:
    from transformers import ByT5Tokenizer, MyT5Tokenizer

    table = {" ".join(f"{byte:02x}" for byte in b"nurse"): " ".join(f"{byte:02x}" for byte in b"guard")}
    path = tmp_path / "byte_maps.json"
    path.write_text(json.dumps({"decompose_map": {}, "merge_map": table}), encoding="utf-8")
    tokenizer: Any = MyT5Tokenizer(str(path))
    # Decoding undoes what the table does.
    assert "The nurse" in tokenizer.decode(tokenizer(KEYED)["input_ids"])
    with pytest.raises(ConfigError, match="the tokenizer changes texts: it reads 'The nurse"):
        encode(tokenizer, [KEYED])
    for text in (KEYED, "na\u00efve \U0001f600", "## a @@ b"):
        assert encode(ByT5Tokenizer(), [text])["input_ids"]


@pytest.mark.parametrize("backend", ["transformers", "T5", "masked", "clip"])
def test_every_local_backend_refuses_a_key(backend: str, model: Path, tmp_path: Path) -> None:
    folder = tmp_path / "model"
    makes: dict[str, Callable[[], object]] = {
        "transformers": lambda: shutil.copytree(model, folder),
        "T5": lambda: save_two_parts(folder, "T5"),
        "masked": lambda: save_masked(folder),
        "clip": lambda: save_tiny_clip(folder),
    }
    makes[backend]()
    name = "transformers" if backend == "T5" else backend
    prompt, options = ("", (KEYED, OTHER)) if backend == "clip" else (KEYED, (" A", " B"))
    request = ChoiceRequest(prompt=prompt, options=options, outcomes=options)
    opened = open_backend(name, str(folder), BackendOptions(device="cpu"))
    assert opened.needed_tokens([request])
    rewrite(folder, removed("n[u]rse"))
    # Other classes write some rules themselves, whatever the file says.
    settings = json.loads((folder / "tokenizer_config.json").read_text(encoding="utf-8"))
    general = settings | {"tokenizer_class": "PreTrainedTokenizerFast"}
    (folder / "tokenizer_config.json").write_text(json.dumps(general), encoding="utf-8")
    opened = open_backend(name, str(folder), BackendOptions(device="cpu"))
    with pytest.raises(ConfigError, match="the tokenizer changes texts: it reads 'The nurse"):
        opened.needed_tokens([request])
    if backend != "clip":
        with pytest.raises(ConfigError, match="the tokenizer changes texts: it reads 'The nurse"):
            answers_of(opened, [request])


@pytest.mark.slow
def test_a_rerun_refuses_a_key(model: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(model, tmp_path / "model"))
    template = "{{ messages[-1].content }}{% if 'nurse' in messages[-1].content %} A{% endif %}"
    (folder / "chat_template.jinja").write_text(template, encoding="utf-8")
    dataset = write_dataset(tmp_path / "datasets" / "made", {"type2": made_items(12)})
    assert any("nurse" in item.sentence for item in made_items(12))
    options = ("--backend", "transformers", "--model", folder, "--device", "cpu", "--chat", "--dataset", dataset)
    ended = evaluators("run", *options, "--out", tmp_path / "refused")
    assert ended.exit_code == 1
    assert "error: the tokenizer's chat template adds another text to" in ended.output
    assert not [*(tmp_path / "refused").rglob("result.json")]
    # A submitter can take the check out of a copy of this project, and not out of the reader's.
    with mock.patch.object(TemplateFrame, "check"):
        evaluators("run", *options, "--out", tmp_path / "runs")
    (path,) = (tmp_path / "runs").rglob("result.json")
    opened = open_backend("transformers", str(folder), BackendOptions(device="cpu", chat=True))
    with pytest.raises(ConfigError, match="chat template adds another text to"):
        rerun(path, opened, tmp_path / "datasets", 24, seed=1)


USER = "{% for m in messages %}<u>{{ m['content'] | trim }}</u>{% endfor %}"


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
    copy: Path, template: str, problem: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chat_template, "_CPU_SECONDS", 1)
    (copy / "chat_template.jinja").write_text(template, encoding="utf-8")
    with pytest.raises(ConfigError) as error:
        load_tokenizer(str(copy), chat=True)
    assert str(error.value).startswith(f"the tokenizer's chat template {problem}")
    assert str(error.value).endswith("; leave out --chat, or name a --tokenizer with another template")
    assert "\n" not in str(error.value)
    load_tokenizer(str(copy))


@pytest.mark.slow
def test_options_after_the_models_own_text_continue_its_message(tmp_path: Path) -> None:
    question = GenerateRequest(prompt="Who left?", max_tokens=9)
    request = prompt_of(TASK, "cot-logprob-v1").following(question, " The nurse.")
    tokenizer = load_tokenizer(str(save_tokenizer(tmp_path, template=USER)), chat=True)

    def ids(*texts: str) -> tuple[list[int], ...]:
        return tuple(tokenizer.pretrained(list(texts), add_special_tokens=False)["input_ids"])

    rows, count = tokenizer.rows(request), tokenizer.count_tokens([request])
    begun = "<u>Who left?</u> The nurse.\nAnswer:"
    assert not isinstance(rows, str)
    assert rows.ids == ids(f"{begun} A", f"{begun} B")
    assert count.n_prompt == len(ids(begun)[0])
    # As a message of the user, the same text is another question, whose answers begin without a space.
    asked = dataclasses.replace(request, n_begun=0)
    of_user = tokenizer.rows(asked)
    assert not isinstance(of_user, str)
    assert of_user.ids == ids(f"<u>{request.prompt}</u>A", f"<u>{request.prompt}</u>B")
    model = examples.result().model
    for template, n_keys in ((None, 1), ("0" * 64, 2)):
        named = dataclasses.replace(model, chat_template_sha256=template)
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
