"""Plans of runs: which items are asked, how they are asked and read, and whether a backend can ask them."""

from __future__ import annotations

import glob
import hashlib
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import NamedTuple, TypeAlias

from biasboard.ground.errors import ConfigError
from biasboard.ground.plain_text import listed
from biasboard.ground.progress import steps
from evaluators.backend import Backend, GenerateRequest, Request, Response, backends_with
from evaluators.stores.store import store_key
from evaluators.task import Asked, CountTokens, ItemFacts, Prompt, ShowsExamples, Task
from schemas.documents.adapters import adapter_name
from schemas.documents.dataset import Item, Manifest, SplitEntry, item_shapes
from schemas.documents.result import Model, Normalisation, Signature
from schemas.files import row_files
from schemas.folders.dataset_folder import read_some, read_split

# Asked part by part, a suite of 279 parts would become 279 jobs of a batch API, each of which may take a day.
_REQUESTS_AT_A_TIME = 16_000
"""Number of requests up to which the parts of a suite are asked together."""
MAX_FAILURE_RATE = 0.05
"""Share of requests that may fail, unless the user chooses another."""
_MOST_NAMED = 4
_NO_MESSAGE = "is a text to continue"
_N_KEY = 8
_KEY = re.compile(f"[0-9a-f]{{{_N_KEY}}}")


@dataclass(frozen=True)
class PlannedPart:
    """The items of one config, and the requests that ask about them."""

    selected: SelectedPart
    task: Task
    prompt: Prompt
    count_tokens: CountTokens | None = None
    """Function that returns the number of tokens of a text; None for prompts that do not depend on a tokenizer."""
    with_adapters: bool = False
    """True if requests name the adapter of the part and the prompt."""

    @property
    def config(self) -> str:
        """The name of the config."""
        return self.selected.config

    @cached_property
    def items(self) -> tuple[SplitItem, ...]:
        """The items in order, each with its split."""
        return self.selected.items

    @cached_property
    def examples(self) -> tuple[Item, ...]:
        """The examples that the prompt shows; none if the task shows none."""
        return shown_examples(self.selected, self.task, self.prompt)

    @cached_property
    def requests(self) -> Sequence[Sequence[Request]]:
        """The requests of each item."""
        requests = [self.task.requests(item, self._asked(split, item)) for split, item in self.items]
        if not self.with_adapters:
            return requests
        name = adapter_name(self.config, self.prompt.id)
        return [[replace(request, adapter=name) for request in of_item] for of_item in requests]

    @property
    def facts(self) -> Iterator[ItemFacts]:
        """The facts that the record of each item keeps."""
        task = self.task
        for split, item in self.items:
            facts = task.facts(item)
            if isinstance(task, ShowsExamples):
                facts = replace(facts, groups={**facts.groups, **task.shown_groups(item, self._asked(split, item))})
            yield facts

    def _asked(self, split: str, item: Item) -> Asked:
        """Return how an item is asked about; an example that the prompt shows is left out of its own prompt."""
        position = self._positions.get((split, item.item_id))
        if position is None:
            return Asked(self.prompt, self.examples, self.count_tokens)
        # An example shown before its own question would give the answer away.
        others = (*self.examples[:position], *self.examples[position + 1 :])
        return Asked(self.prompt, others, self.count_tokens, position)

    @cached_property
    def _positions(self) -> dict[tuple[str, str], int]:
        """The position of each example that the prompt shows, by its split and id."""
        task = self.task
        if not isinstance(task, ShowsExamples):
            return {}
        return {(task.examples_split, example.item_id): place for place, example in enumerate(self.examples)}


class AskedPart(NamedTuple):
    """A part, its requests, and the keys under which stores hold a model's answers to them."""

    part: PlannedPart
    requests: Sequence[Sequence[Request]]
    """Requests of each item: the first ones, and those that follow from their answers as far as these are there."""
    keys: Sequence[Sequence[bytes]]
    """Keys of the requests of each item."""

    @classmethod
    def of(cls, part: PlannedPart, backend: Backend) -> AskedPart:
        """Return a part with its first requests and the keys of the model of a backend."""
        return cls(part, part.requests, _keys(part.requests, backend))

    def followed_up(self, responses: Mapping[bytes, Response], backend: Backend) -> AskedPart:
        """Return the part with the requests that follow from the responses to its first requests too."""
        prompt = self.part.prompt
        more = [
            prompt.follow_ups(requests, [responses.get(key) for key in keys])
            for requests, keys in zip(self.requests, self.keys, strict=True)
        ]
        return AskedPart(
            self.part,
            [[*first, *second] for first, second in zip(self.requests, more, strict=True)],
            [[*first, *second] for first, second in zip(self.keys, _keys(more, backend), strict=True)],
        )


def _keys(requests: Iterable[Sequence[Request]], backend: Backend) -> list[list[bytes]]:
    return [
        [store_key(backend.model, request, with_facts=backend.reads_facts) for request in of_item]
        for of_item in requests
    ]


def distinct_requests(asked: Iterable[AskedPart]) -> dict[bytes, Request]:
    """Return the requests of some parts by their keys; one that several items share occurs, and is asked, once."""
    return {
        key: request
        for part in asked
        for pair in zip(part.keys, part.requests, strict=True)
        for key, request in zip(*pair, strict=True)
    }


def shown_examples(selected: SelectedPart, task: Task, prompt: Prompt) -> tuple[Item, ...]:
    """Return the examples that a prompt shows about the items of a config; none if the task shows none.

    Raises:
        ConfigError: the config has too few examples.
    """
    if not isinstance(task, ShowsExamples) or not prompt.n_examples:
        return ()
    pool = selected.items_of(task.examples_split)
    if prompt.example_rule is not None:
        if (reason := task.why_no_examples(pool, prompt)) is not None:
            raise _no_examples(prompt, {selected.config: reason})
        return tuple(task.chosen_examples(pool, prompt))
    first = prompt.n_examples * (prompt.example_set or 0)
    examples = tuple(pool[first : first + prompt.n_examples])
    if len(examples) < prompt.n_examples:
        raise ConfigError(
            f"prompt '{prompt.id}' shows examples {first + 1} to {first + prompt.n_examples} of split "
            f"'{task.examples_split}', of which config '{selected.config}' has {len(pool)}; take another prompt"
        )
    return examples


class NoExamplesError(ConfigError):
    """No part of a config or suite has the examples that a prompt shows."""


def _no_examples(prompt: Prompt, reasons: Mapping[str, str]) -> NoExamplesError:
    return NoExamplesError(
        f"prompt '{prompt.id}' has no examples to show: {left_out_words(reasons)}; take another prompt or config"
    )


def left_out_words(reasons: Mapping[str, str]) -> str:
    """Return in words why parts have no examples to show, with a few of them by name for each reason."""
    configs: dict[str, list[str]] = {}
    for config, reason in reasons.items():
        configs.setdefault(reason, []).append(config)
    return "; ".join(f"{listed(alike, most=_MOST_NAMED)} ({reason})" for reason, alike in configs.items())


def with_examples(selection: Selection, task: Task, prompt: Prompt) -> tuple[Selection, Mapping[str, str]]:
    """Leave out the parts of a suite in which the rule of a prompt finds no examples.

    Returns:
        The selection of all other parts, and the reason for each part that is left out, by its config.

    Raises:
        NoExamplesError: no part is left.
    """
    if prompt.example_rule is None or not isinstance(task, ShowsExamples):
        return selection, {}
    reasons = {
        part.config: reason
        for part in selection.parts
        if (reason := task.why_no_examples(part.items_of(task.examples_split), prompt)) is not None
    }
    if len(reasons) == len(selection.parts):
        raise _no_examples(prompt, reasons)
    return (selection.without(reasons) if reasons else selection), reasons


@dataclass(frozen=True)
class Plan:
    """The items of a config or suite, and how they are asked and read."""

    selection: Selection
    task: Task
    prompt: Prompt
    chosen_normalisation: Normalisation | None = None
    """Normalisation that the user chose; None for the default."""
    count_tokens: CountTokens | None = None
    """Function that returns the number of tokens of a text; None for prompts that do not depend on a tokenizer."""
    with_adapters: bool = False
    """True if the model answers each part with the adapter of the part and the prompt."""
    _kept_parts: dict[int, PlannedPart] = field(default_factory=dict, init=False, repr=False, compare=False)

    def for_backend(self, backend: Backend) -> Plan:
        """Return the plan with the backend's adapters, and with its tokenizer if the prompt depends on one.

        Raises:
            ConfigError: the prompt depends on a tokenizer that the backend does not have, or an adapter is missing.
        """
        adapters = backend.adapters
        if adapters is not None and not self.with_adapters:
            configs = [part.config for part in self.selection.parts]
            adapters.check_contexts(self.selection.manifest, self.task.name, configs, self.prompt.id)
            return replace(self, with_adapters=True).for_backend(backend)
        if self.prompt.max_prompt_tokens is None:
            return self
        try:
            backend.needed_tokens([])
        except ConfigError as error:
            cut = f"is cut to {self.prompt.max_prompt_tokens:,} tokens of the model"
            raise ConfigError(f"prompt '{self.prompt.id}' {cut}, and {error}") from None
        # A request needs the tokens of its prompt and one more for the answer, hence the - 1.
        needed = backend.needed_tokens
        return replace(self, count_tokens=lambda text: needed([GenerateRequest(prompt=text, max_tokens=1)])[0] - 1)

    @cached_property
    def normalisation(self) -> Normalisation | None:
        """The way in which option log-probabilities become probabilities; None for generated texts.

        Raises:
            ConfigError: a normalisation was chosen for generated texts.
        """
        return normalisation_of(self.prompt, self.chosen_normalisation)

    @cached_property
    def signature(self) -> Signature:
        """The signature of a result of this plan."""
        selection, manifest = self.selection, self.selection.manifest
        return Signature(
            benchmark=manifest.benchmark,
            dataset=manifest.name,
            dataset_version=manifest.version,
            config=selection.config,
            splits=selection.splits,
            items_sha256=selection.items_sha256,
            n_items=selection.n_items,
            task=self.task.name,
            task_version=self.task.version,
            prompt=self.prompt.id,
            prompt_sha256=self.prompt.sha256(),
            scoring=self.prompt.scoring,
            normalisation=self.normalisation,
            n_outcomes=self._n_outcomes(),
            parts=tuple(part.config for part in selection.parts) if selection.is_suite else (),
            examples_sha256=self._examples_sha256(),
        )

    def _n_outcomes(self) -> int | None:
        if self.prompt.n_outcomes is None:
            return None
        (_, item), *_ = self.selection.parts[0].items
        return self.task.n_outcomes(self.prompt, self.task.facts(item))

    def _examples_sha256(self) -> str | None:
        # Examples may come from a split that is not asked, so the hash of the items need not cover them.
        if not isinstance(self.task, ShowsExamples):
            return None
        digest = hashlib.sha256()
        for part in self.selection.parts:
            row_files.add_content(digest, shown_examples(part, self.task, self.prompt))
        return digest.hexdigest()

    @property
    def parts(self) -> Iterator[PlannedPart]:
        """The parts in order; those of a large suite are rebuilt each time, so that only one is in memory."""
        for number, part in enumerate(self.selection.parts):
            planned = PlannedPart(part, self.task, self.prompt, self.count_tokens, self.with_adapters)
            yield planned if part.kept is None else self._kept_parts.setdefault(number, planned)

    def forget(self) -> None:
        """Free the memory of the requests, which are made again if they are needed."""
        self._kept_parts.clear()

    def groups(self, *, alone: bool = False) -> Iterator[Sequence[PlannedPart]]:
        """Yield groups of parts to ask together: small parts share a group, so that a backend gets large batches.

        The groups depend on all requests, never on which of them are answered already, so that a resumed run computes
        exactly the same numbers.

        With ``alone``, each part is a group, as baselines need: some answer a request with the answer to
        another request of the same part.
        """
        max_requests = 0 if alone else _REQUESTS_AT_A_TIME
        group: list[PlannedPart] = []
        n_requests = 0
        for part in self.parts:
            n_new = sum(map(len, part.requests))
            if group and n_requests + n_new > max_requests:
                yield group
                group, n_requests = [], 0
            group.append(part)
            n_requests += n_new
        if group:
            yield group

    def check(self, backend: Backend, *, probe: bool = True) -> None:
        """Check before the first request that the backend can ask what the plan needs.

        Args:
            backend: The model that would answer.
            probe: False if a remote backend must not be probed; only what is known without that is then checked.

        Raises:
            ConfigError: the backend lacks a capability, the prompt makes no sense in a chat, or the items lack facts
                that a baseline needs.
        """
        # Useless predictors, which alone read facts, can answer the items of published answers too; where no item has a
        # prompt, a store could not tell their answers apart, and boards compute them.
        if not backend.reads_facts or self.prompt.has_own_requests:
            check_askable(self.prompt)
        if backend.is_remote and not probe:
            if backend.surely_sends_messages() and not self.prompt.chat:
                prompts = self.task.prompts.values()
                others = [other.id for other in prompts if other.as_message and other.requires != "import"]
                where = "; or --api completions without --chat, where the endpoint has it"
                raise _no_message(self.prompt, _NO_MESSAGE, others, where)
            return
        check_capability(self.task, self.prompt, backend)
        for part in self.parts if backend.needed_facts else ():
            for (_, item), requests in zip(part.items, part.requests, strict=True):
                missing = {name for request in requests for name in backend.needed_facts - request.facts.keys()}
                if missing:
                    raise ConfigError(
                        f"{backend.model.id} needs to know {', '.join(sorted(missing))}, which item '{item.item_id}' "
                        f"of config '{part.config}' lacks; take another baseline, or another config with --config"
                    )


def normalisation_of(prompt: Prompt, chosen: Normalisation | None) -> Normalisation | None:
    """Return the normalisation of a prompt: how option log-probabilities become probabilities.

    Args:
        prompt: The prompt that asks about the items.
        chosen: The user's choice; None for the default, which is that of the prompt or ``sum``.

    Returns:
        The chosen or default normalisation; None for generated texts, which have no normalisation.

    Raises:
        ConfigError: a normalisation was chosen for generated texts.
    """
    if prompt.scoring != "generation":
        return chosen or prompt.normalisation or "sum"
    if chosen is not None:
        raise ConfigError(
            f"prompt '{prompt.id}' reads generated texts, which have no normalisation; leave out --normalisation"
        )
    return None


def run_command(
    signature: Signature,
    backend: Backend,
    *,
    only: Sequence[str] = (),
    task: str | None = None,
    normalisation: Normalisation | None = None,
    limit: int | None = None,
) -> str:
    """Return the command line of a run with a signature, without paths of this machine.

    All but the signature and the backend is what the user chose.
    """
    words = ["python -m evaluators run", f"--dataset out/datasets/{signature.dataset}"]
    words += [f"--config {signature.config}", *(f"--part {part}" for part in only)]
    words += [f"--split {split}" for split in signature.splits]
    words += [f"--backend {backend.model.backend}", *backend.arguments]
    words += [f"--task {task}"] if task is not None else []
    words += [f"--prompt {signature.prompt}"]
    optional = {"normalisation": normalisation, "limit": limit}
    return " ".join([*words, *(f"--{name} {value}" for name, value in optional.items() if value is not None)])


def run_folder(root: Path, signature: Signature, model: Model) -> Path:
    """Return the folder of a run, which depends on the signature and the model's identity.

    The same command thus finds its folder again, and another model or prompt gets another one.
    """
    key = hashlib.sha256(f"{signature.sha256()}:{model.identity_sha256}".encode()).hexdigest()[:_N_KEY]
    return model_folder(root, signature, model.id) / f"{signature.config}-{signature.prompt}-{key}"


def model_folder(root: Path, signature: Signature, model_id: str) -> Path:
    """Return the folder of all runs of the models of one id on a version of a dataset."""
    # Ids on the Hub contain a slash.
    return root / f"{signature.dataset}@{signature.dataset_version}" / model_id.replace("/", "__")


def runs_of_prompt(root: Path, signature: Signature, model_id: str | None, config: str | None = None) -> list[Path]:
    """Return the existing folders of runs with the prompt of a signature, whatever their items, sorted.

    Args:
        root: Folder of all runs.
        signature: What names the dataset and the prompt.
        model_id: Id of the model; None for any.
        config: Config of the runs; None for any config or suite: a config is asked the same questions on its own and as
            part of a suite.
    """
    # A prompt's name may begin with another's, so only the key may follow.
    of_config = ".*" if config is None else re.escape(config)
    name = re.compile(f"{of_config}-{re.escape(signature.prompt)}-{_KEY.pattern}")
    if model_id is not None:
        return sorted(path for path in model_folder(root, signature, model_id).glob("*/") if name.fullmatch(path.name))
    folders = model_folder(root, signature, "any").parent.glob("*/*/")
    return sorted(path for path in folders if name.fullmatch(path.name))


def prompts_of_runs(root: Path, manifest: Manifest, config: str, model_id: str | None = None) -> frozenset[str]:
    """Return the prompts with which a model (by default any) was asked a config or suite, by the folders of runs."""
    name = re.compile(rf"{re.escape(config)}-(?P<prompt>.+)-{_KEY.pattern}")
    model = "*" if model_id is None else glob.escape(model_id.replace("/", "__"))
    folders = (root / f"{manifest.name}@{manifest.version}").glob(f"{model}/*/")
    return frozenset(match["prompt"] for folder in folders if (match := name.fullmatch(folder.name)))


def can_ask(prompt: Prompt, backend: Backend) -> bool:
    """Return True if a backend can ask with a prompt."""
    return prompt.needs <= backend.capabilities and why_no_message(prompt, backend) is None


def why_no_message(prompt: Prompt, backend: Backend) -> str | None:
    """Return why a prompt makes no sense as the message that a backend sends; None if it does, or is sent as a text."""
    if backend.model.chat_template_sha256 is not None and not prompt.chat:
        return _NO_MESSAGE
    # sends_messages() may probe the endpoint, so it is called only if the answer matters.
    if prompt.as_message or not backend.sends_messages():
        return None
    return _NO_MESSAGE if prompt.follow_up is None else "scores options after the model's own text"


def check_askable(prompt: Prompt) -> None:
    """Check that a prompt can be asked at all.

    Raises:
        ConfigError: the prompt marks answers that were given elsewhere.
    """
    if prompt.requires == "import":
        raise ConfigError(
            f"prompt '{prompt.id}' marks published answers, which biasboard import reads; "
            "take another prompt to ask a model"
        )


def _no_message(prompt: Prompt, why: str, others: Sequence[str], other_remedies: str) -> ConfigError:
    return ConfigError(
        f"prompt '{prompt.id}' {why}, and this endpoint is sent messages of a chat; take --prompt "
        f"{' or '.join(others)}{other_remedies}"
    )


def check_capability(task: Task, prompt: Prompt, backend: Backend) -> None:
    """Check that a backend can ask with a prompt.

    Raises:
        ConfigError: the backend lacks a capability, or the prompt makes no sense in a chat.
    """
    model = backend.model
    if missing := sorted(prompt.needs - backend.capabilities):
        others = [other.id for other in task.prompts.values() if other.needs <= backend.capabilities]
        why = "".join(f"; {name}: {reason}" for name, reason in backend.runtime.obstacles.items())
        able = backends_with(prompt.needs)
        others_can = f"; backends that can: {', '.join(able)}" if able else ""
        raise ConfigError(
            f"backend '{model.backend}' cannot do {' and '.join(missing)}, which prompt '{prompt.id}' needs; "
            f"it can do: {', '.join(sorted(backend.capabilities)) or 'nothing'}; "
            f"prompts for that: {', '.join(others) or 'none'}{_completion_options(backend)}{why}{others_can}"
        )
    if (unfit := why_no_message(prompt, backend)) is not None and backend.sends_messages():
        others = [
            other.id for other in task.prompts.values() if other.as_message and other.needs <= backend.capabilities
        ]
        raise _no_message(prompt, unfit, others, _completion_options(backend))
    if model.chat_template_sha256 is not None and not prompt.chat:
        others = [other.id for other in task.prompts.values() if other.chat]
        raise ConfigError(
            f"prompt '{prompt.id}' is a text to continue, not a message; leave out --chat, or take --prompt "
            f"{' or '.join(others)}"
        )


def _completion_options(backend: Backend) -> str:
    options = backend.completion_options() if backend.sends_messages() else ()
    return f"; or take {' or '.join(options)}" if options else ""


SplitItem: TypeAlias = tuple[str, Item]
"""An item and the split that it comes from."""

# Larger suites are read part by part: 297,379 items in 279 parts were asked within 303 MB.
_MAX_ITEMS_IN_MEMORY = 20_000
"""Largest number of a suite's items that stay in memory; those of larger suites are read again when needed."""


@dataclass(frozen=True, kw_only=True)
class SelectedPart:
    """The selected items of one config."""

    config: str
    folder: Path = Path()
    entries: tuple[SplitEntry, ...] = ()
    """All splits of the config."""
    splits: frozenset[str] = frozenset()
    """Splits whose items are selected."""
    limit: int | None = None
    support: frozenset[str] = frozenset()
    """Splits that the limit takes nothing from."""
    is_of_suite: bool = False
    """True if the config is asked as a part of a suite."""
    kept: tuple[SplitItem, ...] | None = field(default=None, repr=False)
    """The selected items; None to read them from the files each time."""
    _whole: dict[str, Sequence[Item]] = field(default_factory=dict, repr=False, compare=False)
    """Whole splits that were read before, if the selected items are kept too."""

    @property
    def items(self) -> tuple[SplitItem, ...]:
        """The selected items in order, each with its split.

        Raises:
            ConfigError: the limit leaves no whole pair or set.
            DataError: the data files are damaged.
        """
        if self.kept is not None:
            return self.kept
        wanted = [entry for entry in self.entries if entry.split in self.splits]
        items = [(entry.split, item) for entry in wanted for item in read_split(self.folder, entry)]
        # A limit over all splits would leave too few items in the small ones: of 1,000 items with 32 in split bias and
        # 64 to show as examples, a limit of 100 would keep about one in ten of each.
        limited = [(split, item) for split, item in items if split not in self.support]
        if self.limit is None or not limited:
            return tuple(items)
        units = _units_within(limited, self.limit)
        if not units:
            smallest = min(Counter(item.unit for _, item in limited).values())
            unit = item_shapes()[wanted[0].item_shape].unit_name
            raise ConfigError(
                f"--limit {self.limit} leaves no whole {unit} of config '{self.config}'; raise it to {smallest} or more"
            )
        return tuple((split, item) for split, item in items if split in self.support or item.unit in units)

    @property
    def max_items(self) -> int:
        """Upper bound on the number of selected items, from the manifest."""
        sizes = {entry.split: entry.n_items for entry in self.entries if entry.split in self.splits}
        n_limited = sum(n for split, n in sizes.items() if split not in self.support)
        taken = n_limited if self.limit is None else min(self.limit, n_limited)
        return taken + sum(n for split, n in sizes.items() if split in self.support)

    def sampled(self, n_items: float) -> SelectedPart:
        """Return the part with about so many items, evenly spaced over all its splits, without reading the others."""
        wanted = [entry for entry in self.entries if entry.split in self.splits]
        step = max(1, int(sum(entry.n_items for entry in wanted) / n_items))
        kept = tuple((entry.split, item) for entry in wanted for item in read_some(self.folder, entry, step))
        return replace(self, kept=kept)

    def items_of(self, split: str) -> Sequence[Item]:
        """Return all items of a split, selected or not.

        Raises:
            ConfigError: the config has no such split.
        """
        entry = next((entry for entry in self.entries if entry.split == split), None)
        if entry is None:
            raise ConfigError(f"config '{self.config}' has no split '{split}', whose items its prompts show")
        if self.kept is None:
            return read_split(self.folder, entry)
        if split not in self._whole:
            self._whole[split] = read_split(self.folder, entry)
        return self._whole[split]


@dataclass(frozen=True, kw_only=True)
class Selection:
    """The selected items of one config, or of the parts of a suite."""

    manifest: Manifest
    config: str
    """Name of the config or suite."""
    item_shape: str
    """Item shape as the manifest lists it."""
    splits: tuple[str, ...]
    parts: tuple[SelectedPart, ...]
    is_suite: bool = False
    n_items: int
    items_sha256: str
    """SHA-256 of all items in order."""

    @property
    def limit(self) -> int | None:
        """The largest number of items of each part; None if there is none."""
        return self.parts[0].limit

    @property
    def items(self) -> tuple[SplitItem, ...]:
        """The items of all parts in order, each with its split."""
        return tuple(chain.from_iterable(part.items for part in self.parts))

    def without(self, configs: Collection[str]) -> Selection:
        """Return the selection without some of its parts."""
        kept = tuple(part for part in self.parts if part.config not in configs)
        if not self.items_sha256:  # Of an estimate.
            return replace(self, parts=kept, n_items=sum(part.max_items for part in kept))
        digest, n_items = hashlib.sha256(), 0
        for part in kept:
            items = part.items
            n_items += len(items)
            row_files.add_content(digest, (item for _, item in items))
        return replace(self, parts=kept, n_items=n_items, items_sha256=digest.hexdigest())


def shape_listed(manifest: Manifest, name: str) -> str:
    """Return the item shape of a config or suite, as the manifest lists it.

    Raises:
        ConfigError: there is no such config or suite.
    """
    # All configs of a suite have one shape.
    configs = manifest.parts(name) or (name,)
    item_shape = next((entry.item_shape for entry in manifest.splits if entry.config == configs[0]), None)
    if item_shape is None:
        have = ", ".join(dict.fromkeys((*(suite.name for suite in manifest.suites), *manifest.configs)))
        raise ConfigError(f"config '{name}' is not in dataset '{manifest.name}'; have: {have}")
    return item_shape


def select(
    folder: Path,
    manifest: Manifest,
    name: str,
    *,
    splits: Sequence[str] = (),
    parts: Sequence[str] = (),
    limit: int | None = None,
    support: frozenset[str] = frozenset(),
    without: frozenset[str] = frozenset(),
    n_sampled: int | None = None,
) -> Selection:
    """Select the items of a config or suite.

    Args:
        folder: The dataset folder.
        manifest: The manifest of the dataset.
        name: Name of the config or suite.
        splits: Names of the splits; empty for all splits.
        parts: Configs of the suite to take; empty for all of them.
        limit: Largest number of items of each config; None for all. Minimal pairs (or sets of variants) are selected
            whole, in the order of the hashes of their ids, so that every machine selects the same ones.
        support: Splits that the limit takes nothing from.
        without: Splits to leave out, such as those that no measure reads.
        n_sampled: For estimates alone: about how many items to read, evenly spaced, and no others. The number of items
            is then an upper bound, and there is no hash of them. None to read all.

    Raises:
        ConfigError: there is no such config, part or split, or the limit leaves no whole pair or set.
        DataError: the data files are damaged.
    """
    item_shape = shape_listed(manifest, name)
    of_suite = manifest.parts(name)
    if parts and not of_suite:
        raise ConfigError(f"--part is for a suite, and '{name}' is a single config; leave it out")
    for part_name in parts:
        if part_name not in of_suite:
            raise ConfigError(f"part '{part_name}' is not in suite '{name}'; have: {', '.join(of_suite)}")
    of_configs = []
    for config in [config for config in of_suite if not parts or config in parts] or [name]:
        entries = tuple(entry for entry in manifest.splits if entry.config == config)
        wanted = {entry.split for entry in entries if not splits or entry.split in splits} - without
        of_configs.append(
            SelectedPart(
                config=config,
                folder=folder,
                entries=entries,
                splits=frozenset(wanted),
                limit=limit,
                support=support,
                is_of_suite=bool(of_suite),
            )
        )
    have = dict.fromkeys(entry.split for part in of_configs for entry in part.entries)
    for split in splits:
        if split not in have:
            raise ConfigError(f"split '{split}' is not in config '{name}'; have: {', '.join(have)}")
    for part in of_configs:
        if not part.splits:
            raise ConfigError(f"part '{part.config}' of '{name}' has none of the splits; leave it out with --part")
    n_most = sum(part.max_items for part in of_configs)
    selected, digest, n_items = [], hashlib.sha256(), 0
    with steps() as step:
        for number, part in enumerate(of_configs):
            step("reading the items", number, len(of_configs))
            if n_sampled is not None:
                selected.append(part.sampled(n_sampled / len(of_configs)))
                continue
            items = part.items
            n_items += len(items)
            row_files.add_content(digest, (item for _, item in items))
            stays = len(of_configs) == 1 or n_most <= _MAX_ITEMS_IN_MEMORY
            selected.append(replace(part, kept=items) if stays else part)
    return Selection(
        manifest=manifest,
        config=name,
        item_shape=item_shape,
        splits=tuple(split for split in have if split not in without and (not splits or split in splits)),
        parts=tuple(selected),
        is_suite=bool(of_suite),
        n_items=n_items if n_sampled is None else n_most,
        items_sha256=digest.hexdigest() if n_sampled is None else "",
    )


def sampled(selection: Selection, n_items: int) -> Selection:
    """Return a selection with about so many of its items, evenly spaced, and at least one of each part."""
    step = max(1, sum(len(part.items) for part in selection.parts) // n_items)
    return replace(selection, parts=tuple(replace(part, kept=part.items[::step]) for part in selection.parts))


def _units_within(items: Sequence[SplitItem], limit: int) -> frozenset[str]:
    """Return as many whole units of items as the limit allows, in the order of the hashes of their ids."""
    sizes = Counter(item.unit for _, item in items)
    chosen: set[str] = set()
    room = limit
    for unit in sorted(sizes, key=lambda unit: hashlib.sha256(unit.encode()).digest()):
        if sizes[unit] > room:
            # Smaller units might still fit, but stopping here makes every smaller limit's selection part of a larger
            # one's, whose run then reuses the answers.
            break
        chosen.add(unit)
        room -= sizes[unit]
    return frozenset(chosen)
