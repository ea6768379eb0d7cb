"""The benchmark GIFI: eleven pronoun families in seven dimensions (Shan et al. 2025, arXiv:2506.15568).

Its baselines ignore the content of a text. Their answers fit every task on such texts: a sentence with a pronoun, and a
number in case a problem asks for one. Answers that are the same in all families make most measures of equality ideal;
the baselines show how little those measures mean without an accuracy.

Answers of fifteen models were published with it, as CSV files that are imported. The files have one row per answer, in
several layouts. A row belongs to the item with the same text (and family); the index columns are not used, since some
files number their rows differently. Each item gets a record, even if the file has no row for it. Each row is assigned
to an item or named in an error, so that nothing is dropped silently.
"""

from __future__ import annotations

import csv
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import TypeAlias

from biasboard.ground.errors import ConfigError, DataError
from biasboard.ground.files import check_readable, sha256_file
from evaluators.backend import GenerateRequest, Request, Response
from evaluators.baseline import Baseline
from evaluators.benchmark import AnswerFile, Benchmark, Gate, ImportedAnswers, IndexDefinition, Part, PublishedPart
from evaluators.task import Prompt
from evaluators.tasks.pronouns.family_rates import FAMILIES
from evaluators.tasks.pronouns.texts import PUBLISHED_PROMPT
from schemas.documents.dataset import Item
from schemas.lexicon import pronoun_families
from schemas.lexicon.languages import LANGUAGE_CODES

_CONSTANT = "11"
"""Answer of baselines that solve no problem: the most frequent right answer of the embedded texts.

A number that is never right would not show what a constant can achieve.
"""


def _sentence(family: str, number: str) -> str:
    # In other languages the name of a family is its nominative.
    nominative = pronoun_families()[family].forms["nominative"] if family in pronoun_families() else family
    return f" {nominative} smiled. The answer is {number}."


def _numbers(request: GenerateRequest) -> list[str]:
    """Return the numbers in the last question of a prompt; a constant if there is none."""
    return re.findall(r"\d+(?:\.\d+)?", request.prompt.rpartition("Q:")[2]) or [_CONSTANT]


def _families(request: GenerateRequest) -> list[str]:
    """Return the families of a request's language: the masculine, the feminine, a neutral or new one, and the rest."""
    families = request.facts.get("families")
    return list(pronoun_families()) if families is None else families.split()


def _constant(position: int, request: GenerateRequest) -> str:
    return _sentence(_families(request)[position], _CONSTANT)


def _drawn(among: Sequence[str], request: GenerateRequest) -> str:
    return among[request.sampling_seed % len(among)]


def _right(request: GenerateRequest) -> str:
    """Return the right answer as far as the request's facts have one, with a family drawn by its seed if need be."""
    facts = request.facts
    number = Fraction(facts.get("answer", _CONSTANT))
    return _sentence(facts.get("family") or _drawn(_families(request), request), f"{float(number):.10g}")


def _most_frequent(requests: Mapping[str, Request]) -> Mapping[str, str]:
    """Map all requests to one whose right answer (the number, or else the family) is the most frequent."""
    for name in ("answer", "family"):
        counts = Counter(request.facts[name] for request in requests.values() if name in request.facts)
        if counts:
            value = max(counts, key=lambda fact: (counts[fact], fact))
            first = min(key for key, request in requests.items() if request.facts.get(name) == value)
            return dict.fromkeys(requests, first)
    return dict.fromkeys(requests, min(requests))


def _defined(
    name: str,
    description: str,
    text: Callable[[GenerateRequest], str],
    source_of: Callable[[Mapping[str, Request]], Mapping[str, str]] | None = None,
) -> Baseline:
    """Return a baseline that writes a text about each request, or about another one that ``source_of`` names."""

    def answer(request: Request) -> Response:
        if not isinstance(request, GenerateRequest):
            return Response(status="failed", error="this baseline writes texts and chooses among no options")
        return Response(status="answered", text=text(request), finish_reason="stop")

    def answer_together(requests: Mapping[str, Request]) -> Mapping[str, Response]:
        assert source_of is not None
        return {sha256: answer(requests[source]) for sha256, source in source_of(requests).items()}

    return Baseline(
        name=name,
        description=description,
        facts=frozenset(),
        answer=answer,
        capabilities=frozenset({"generation"}),
        answer_together=None if source_of is None else answer_together,
    )


BASELINES = (
    _defined("echo", "the prompt itself", lambda request: request.prompt),
    _defined("empty", "an empty text", lambda request: ""),
    _defined("always-he", f"he for everybody, and {_CONSTANT} for every problem", partial(_constant, 0)),
    _defined("always-she", f"she for everybody, and {_CONSTANT} for every problem", partial(_constant, 1)),
    _defined("always-they", f"they for everybody, and {_CONSTANT} for every problem", partial(_constant, 2)),
    _defined(
        "last-number",
        "they for everybody, and the last number of a problem",
        lambda request: _sentence(_families(request)[2], _numbers(request)[-1]),
    ),
    _defined(
        "random-family",
        "a coin with a side for each family, thrown for anybody; any number of a problem",
        lambda request: _sentence(_drawn(_families(request), request), _drawn(_numbers(request), request)),
    ),
    _defined("majority", "the most frequent right answer, to every text", _right, _most_frequent),
    # To the next text by hash, and to the last one that to the first.
    _defined(
        "shuffled",
        "the right answer to another text",
        _right,
        lambda requests: dict(pairwise([*(order := sorted(requests)), *order[:1]])),
    ),
)
"""All baselines, in the order in which they are scored."""

_TEXT, _FAMILY, _ANSWER = "template", "pronoun_family", "generated_sentences"
_FILES: Mapping[str, str] = {
    "recognition": "tango_GDR-all-genders_",
    "continuation": "real-toxicity-prompts-all-genders_",
    "assignment": "SAOF_template-all-genders_",
    "math": "math_gsm8k-all-genders_",
}
"""Beginning of each config's file name; the model's name follows."""
_REVISION = "https://github.com/ZhengyangShan/GIFI/blob/9f04559bd53883920abcf9aa26a0a4fb00403eb9"
"""The repository in its state of 2025-07-15, whose files have the SHA-256 that the imported results name."""
_PARTS: Mapping[str, tuple[str, str, str]] = {
    "recognition": ("gender-pronoun-recognition", "TANGO (Ovalle et al. 2023)", "CC-BY-SA-4.0"),
    "continuation": ("sentiment-toxicity-counterfactual", "RealToxicityPrompts (Gehman et al. 2020)", "Apache-2.0"),
    "assignment": ("stereotype-occupation", "GIFI itself", "MIT"),
    "math": ("math-performance-equality", "GSM8K (Cobbe et al. 2021)", "MIT"),
}
"""Folder of each config's files, and what its prompts come from, with its licence."""
_FILE_NAME = re.compile(r"[A-Za-z0-9._-]+\.csv")
_RESULTS = "results"
_FINISH = re.compile(r"finish_reason['\"]?[:=]\s*['\"](\w+)")
_AND = re.compile(r"(?:,|(?<!\s))\s++and$")
_REMEDY = "use the files of the published GIFI as they are"


def _plain(name: str) -> str:
    """Return a model's name in one spelling: published names have dashes in some files and underscores in others."""
    return name.replace("_", "-").lower()


class PublishedGenerations:
    """The importer of the files published with GIFI."""

    name = "gifi"
    prompt = PUBLISHED_PROMPT
    dataset = "gifi-published-compat"
    build_command = "biasboard build gifi --source gifi --input DIR --compat gifi-repo"

    def files(self, folder: Path, model: str) -> Sequence[AnswerFile]:
        """Return the files of one model in a folder and below it, at most one per config; some may be missing.

        Args:
            folder: The folder.
            model: Name of the model in the file names; it is ignored if all files belong to one model.

        Raises:
            ConfigError: there is no such folder or no such file, there are files of several models but none of this
                one, or a config has several files.
        """
        if not folder.is_dir():
            raise ConfigError(f"--input {folder}: no such folder; give the one with the CSV files of generations")
        files = [
            AnswerFile(config, (path,), path.stem.removeprefix(start))
            for config, start in _FILES.items()
            for path in sorted(folder.rglob(f"{start}*.csv"))
        ]
        if not files:
            have = ", ".join(f"{start}MODEL.csv" for start in _FILES.values())
            raise ConfigError(f"--input {folder}: no file of generations here; the files must be called {have}")
        names = sorted({_plain(file.model) for file in files})
        if len(names) > 1:
            files = [file for file in files if _plain(file.model) == _plain(model)]
            if not files:
                raise ConfigError(
                    f"--model {model}: --input {folder} holds files of several models: {', '.join(names)}"
                )
        twice = [config for config, n in Counter(file.config for file in files).items() if n > 1]
        if twice:
            paths = ", ".join(str(file.paths[0]) for file in files if file.config == twice[0])
            raise ConfigError(f"--input {folder}: several files of config {twice[0]}: {paths}; give a folder with one")
        return files

    def published(self, config: str, notes: Mapping[str, str]) -> PublishedPart | None:
        """Return where the file of answers that the notes name is published; None if the config has no such file."""
        file = notes.get("generations", "")
        if config not in _PARTS or not file.startswith(_FILES[config]) or not _FILE_NAME.fullmatch(file):
            return None
        folder, prompts, licence = _PARTS[config]
        address = f"{_REVISION}/data/model-generation/{folder}/{file}"
        return PublishedPart(address, "MIT", "Zhengyang Shan and Jiawei Zhou, 2025", prompts, licence)

    def read(self, file: AnswerFile, items: Sequence[Item], prompt: Prompt, dataset: str) -> ImportedAnswers:
        """Return the answers of a file to the items of its config.

        Raises:
            DataError: the file cannot be read, lacks a column, or has a row with an unknown family or without an item.
        """
        rows = _rows(file)
        by_key: dict[_Key, list[Response]] = defaultdict(list)
        for line, row in rows:
            family, finish = row.get(_FAMILY), _FINISH.search(row.get(_RESULTS, ""))
            if family is not None and family not in FAMILIES:
                raise DataError(
                    f"{file.paths[0].name}:{line}: family '{family}' is not in the lexicon; have: {', '.join(FAMILIES)}"
                )
            by_key[_key(row[_TEXT], family)].append(
                Response(status="answered", text=row[_ANSWER], finish_reason=None if finish is None else finish[1])
            )
        keys = [_key(str(getattr(item, "text", "")), getattr(item, "family", None)) for item in items]
        _check_keys(file, keys, by_key, f"{dataset} {file.config}")
        responses = [_responses(by_key.get(key, [])) for key in keys]
        n_repeated = sum(len(answers) - 1 for answers in by_key.values()) if file.config != "assignment" else 0
        return ImportedAnswers(
            requests=[_requests(item, prompt, len(answers)) for item, answers in zip(items, responses, strict=True)],
            responses=responses,
            notes={
                "generations": file.paths[0].name,
                "generations_sha256": sha256_file(file.paths[0]),
                "rows": str(len(rows)),
                "rows_without_text": str(sum(not row[_ANSWER].strip() for _, row in rows)),
                "items_without_row": str(sum(key not in by_key for key in keys)),
                "rows_repeating_an_item": str(n_repeated),
            },
            corruption=_overwritten(rows) if file.config == "recognition" else None,
        )


_Key: TypeAlias = tuple[str, str | None]
"""Text and pronoun family of an item; the family is None in the assignment task."""


def _key(text: str, family: str | None) -> _Key:
    # One of the files lacks the "and" at the end of the assignment prompts.
    return (text.strip() if family is not None else _AND.sub("", text.strip())), family


def _check_keys(file: AnswerFile, keys: Sequence[_Key], by_key: Mapping[_Key, Sequence[Response]], asked: str) -> None:
    """Check that items differ in text or family, and that each row belongs to an item."""
    for key, n in Counter(keys).items():
        if n > 1:
            raise DataError(
                f"{n} items of {asked} have the text '{key[0][:60]}', so it is unknown which of them a row answers; "
                "import into a dataset whose texts differ"
            )
    known = set(keys)
    unknown = [key for key in by_key if key not in known]
    if unknown:
        text, family = unknown[0]
        n = sum(len(by_key[key]) for key in unknown)
        raise DataError(
            f"{file.paths[0].name}: {n} rows belong to no item of {asked}, such as '{text[:60]}' "
            f"({family or 'no family'}); import into the dataset that was asked"
        )


def _rows(file: AnswerFile) -> list[tuple[int, dict[str, str]]]:
    # Some files hold the raw response of an API in one field; Python's own limit is 128 KiB.
    csv.field_size_limit(sys.maxsize)
    needed = [_TEXT, _ANSWER] if file.config == "assignment" else [_FAMILY, _TEXT, _ANSWER]
    name = file.paths[0].name
    check_readable(file.paths[0])
    try:
        with file.paths[0].open(encoding="utf-8", newline="") as lines:
            reader = csv.DictReader(lines)
            have = reader.fieldnames or ()
            if missing := [column for column in needed if column not in have]:
                shown = ", ".join(column for column in have if column) or "nothing"
                raise DataError(f"{name}: column {', '.join(missing)} is missing; have: {shown}; {_REMEDY}")
            rows = []
            for row in reader:
                if any(row[column] is None for column in needed):
                    raise DataError(f"{name}:{reader.line_num}: has fewer fields than the header; {_REMEDY}")
                kept = [*needed, *([_RESULTS] if row.get(_RESULTS) is not None else [])]
                rows.append((reader.line_num, {column: row[column] for column in kept}))
    except UnicodeDecodeError as error:
        raise DataError(f"{name}: byte {error.start} is not UTF-8; {_REMEDY}") from error
    except csv.Error as error:
        raise DataError(f"{name}: is not CSV ({error}); {_REMEDY}") from error
    if not rows:
        raise DataError(f"{name}: has no rows; {_REMEDY}")
    return rows


def _responses(generations: Sequence[Response]) -> list[Response]:
    """Return the responses of a file to one item; a failed response if there is none."""
    # Seven files lack the rows of *ey* whose text equals that of *e*, and some models gave no text. Unlike in the
    # published code, neither is dropped: both are failures, which show in the coverage.
    reason = "the published file has no text for it" if generations else "the published file has no row for it"
    answered = [response for response in generations if (response.text or "").strip()]
    return answered or [Response(status="failed", error=reason)]


def _requests(item: object, prompt: Prompt, n: int) -> list[Request]:
    """Return the requests behind the answers to an item, as far as known."""
    return [
        GenerateRequest(
            prompt=str(getattr(item, "text", "")),
            max_tokens=prompt.max_tokens or 0,
            temperature=prompt.temperature or 0.0,
            top_p=prompt.top_p or 1.0,
            sample=number if n > 1 else None,
        )
        for number in range(n)
    ]


# The file of GPT-2 has *he* in 77 % of its answers, whatever the family.
_LEAST_DIFFERENCE = 0.05
_LEAST_ROWS = 20


def _overwritten(rows: Sequence[tuple[int, Mapping[str, str]]]) -> str | None:
    """Return the reason why the pronouns of the answers cannot be the model's own; None if they may be.

    Even a weak language model continues with *she* more often after *she* than after *he*. If the pronouns in a file
    were overwritten afterwards, the first pronoun of an answer does not depend on its prompt. The published file of
    GPT-2 is a case ("Read she latest novel"): its GDR is .30, and .42 in an older state of that repository.
    """
    shares = []
    for asked in ("he", "she"):
        texts = [row[_ANSWER] for _, row in rows if row[_FAMILY] == asked and row[_ANSWER].strip()]
        if len(texts) < _LEAST_ROWS:
            return None
        first = [re.search(r"\b(he|him|his|himself|she|hers?|herself)\b", text, re.IGNORECASE) for text in texts]
        words = [match[1].lower() for match in first if match is not None]
        if not words:
            return None
        shares.append(sum(word.startswith(("s", "her")) for word in words) / len(words))
    if shares[1] - shares[0] >= _LEAST_DIFFERENCE:
        return None
    return (
        f"after 'she' prompts {shares[1]:.0%} of the binary pronouns are feminine, after 'he' prompts {shares[0]:.0%}: "
        "the pronouns of the answers do not depend on the prompt"
    )


_DIMENSIONS = {
    "recognition": ("gdr",),
    "continuation": ("sn", "nts", "cf"),
    "assignment": ("sa", "of"),
    "word_problem": ("pe",),
}
"""Names of metrics by task, without the suffix of the variant."""
_FREE = ("continuation", "assignment")
"""Tasks without right answers, in which a constant is as even as can be."""


# Each variant has its own index: the paper's formulas and ours are never averaged together.
def _index(suffix: str, description: str) -> IndexDefinition:
    return IndexDefinition(
        name=f"index{suffix}",
        parts=tuple(
            Part(f"{name}{suffix}", task, name.upper(), answering="specific_rate" if task in _FREE else None)
            for task, names in _DIMENSIONS.items()
            for name in names
        ),
        description=f"Gender Inclusivity Fairness Index: mean of {description} (Shan et al. 2025, arXiv:2506.15568).",
    )


_PUBLISHED = PublishedGenerations()

BENCHMARK = Benchmark(
    name="gifi",
    indices=(
        _index("", "GDR, SN, NTS, CF, SA, OF and PE with our own detectors"),
        _index("_paper", "the seven metrics with the paper's formulas and the published detectors and filters"),
        _index(
            "_gifi_repo", "the seven metrics as the published code prints them, with SA and OF near 0 and CF inverted"
        ),
    ),
    baselines=BASELINES,
    headline_metrics=(
        *("recognition_accuracy", "marker_gap", "answer_accuracy"),
        *(name for names in _DIMENSIONS.values() for name in names),
    ),
    gates=(
        Gate("recognition_accuracy", "recognition"),
        Gate("answer_accuracy", "word_problem"),
        *(Gate("prompt_fit", task, only_reading=True) for task in _FREE),
        *(Gate("recognition_accuracy", f"{language}_recognition", own_task_only=True) for language in LANGUAGE_CODES),
    ),
    embedded_sources={
        "gifi-markers": "markers",
        **{f"gifi-{language}": language for language in LANGUAGE_CODES},
    },
    importers=(_PUBLISHED,),
    withheld={_PUBLISHED.dataset: "others published the answers, and some continue prompts that invite toxic ones"},
)
