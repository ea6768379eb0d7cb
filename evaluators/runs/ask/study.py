"""A study: the items of datasets and how they are asked, from the choices of a user to finished runs.

``Study(...).plans(backend)`` chooses the prompts that fit a model; ``estimate`` says what asking by these plans takes,
and ``ask`` asks. The commands ``run``, ``score`` and ``reproduce`` and the functions for Python all go this way. The
options of ``run`` are declared here, of which other commands have some.

Finds the prompts that a user names, and chooses those that fit a model: that it can be asked and its context holds.

Whether prompts are too long is judged by a sample of the items, so that the choice takes no longer for many of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain, groupby
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias, cast, get_args

import typer

from biasboard.ground.errors import ConfigError
from biasboard.ground.options import Only, names_in, option
from biasboard.ground.progress import note, progress, steps, working
from evaluators.backend import Backend, ChoiceRequest
from evaluators.backend_options import MODEL_PANEL
from evaluators.runs.ask.context_limit import Ruler, check_context, shortfall
from evaluators.runs.plan.earlier_answers import AnswerStores
from evaluators.runs.plan.plan import (
    MAX_FAILURE_RATE,
    Plan,
    Selection,
    left_out_words,
    run_command,
    sampled,
    select,
    shape_listed,
    why_no_message,
    with_examples,
)
from evaluators.scorer import SCORER_HELP, TextScorer, open_scorers, with_scorers
from evaluators.task import Prompt, ReadsScores, ShowsExamples, Task, prompt_of, task_for
from schemas.documents.dataset import Manifest
from schemas.documents.result import Normalisation, Signature
from schemas.folders.dataset_folder import dataset_at, read_manifest

if TYPE_CHECKING:
    from evaluators.runs.ask.pipeline import Finished
    from evaluators.runs.plan.estimate import Estimate


ITEMS_PANEL, ASKING_PANEL, FILES_PANEL = "Items", "Asking", "Files"
DATASET_HELP = "Folder of a built dataset, or one of the Hub: ORG/NAME or ORG/NAME@REVISION."
MAX_FAILURES_HELP = "Share of requests that may fail; with more, the run ends without a result."
CACHE_VARIABLE = "BIASBOARD_CACHE"
VERBOSE = typer.Option(
    "--verbose", help="Print a table of all measures instead of the headline measures.", rich_help_panel=FILES_PANEL
)
NORMALISATION_HELP = (
    f"{', '.join(get_args(Normalisation)[:-1])} or {get_args(Normalisation)[-1]}; by default that of the prompt, "
    "mostly sum. Not for generated texts."
)

Preferred: TypeAlias = Callable[[Manifest, str], Mapping[str, frozenset[str]]]
"""Function that returns, for a config of a dataset, the prompts by which others were asked, by who they are: an answer
to the same prompts can be compared with theirs."""
OF_ITEMS = Only({"configs", "parts", "splits", "limit", "task", "prompts", "contexts"})
"""The options of :class:`Study` that choose what is asked, and not how answers are read."""


def normalisation_named(text: str) -> Normalisation:
    """Return the normalisation that a user names.

    Raises:
        ConfigError: there is no normalisation of this name.
    """
    if text not in get_args(Normalisation):
        raise ConfigError(f"--normalisation {text} does not exist; have: {', '.join(get_args(Normalisation))}")
    return cast(Normalisation, text)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunChoice:
    """The model that is asked, where its runs go, and who scores its texts."""

    backend: str = option("Backend that calls the model; see 'list'.", panel=MODEL_PANEL, default=...)
    model: str = option(
        "Model: a Hub id, a folder, a file of stored answers, or a baseline (or 'all' baselines).",
        panel=MODEL_PANEL,
        default=...,
    )
    out: Path = option("Folder of all runs.", panel=FILES_PANEL, default=Path("out/runs"))
    max_failure_rate: float = option(MAX_FAILURES_HELP, panel=ASKING_PANEL, default=MAX_FAILURE_RATE, min=0, max=1)
    cache: Path | None = option(
        "File of the cache that runs share: answers in it are reused.", panel=FILES_PANEL, envvar=CACHE_VARIABLE
    )
    scorers: tuple[str, ...] | None = option(SCORER_HELP, flag="--scorer", panel="Generated texts")


@dataclass(frozen=True, kw_only=True)
class Study:
    """What is asked of a model, before it is known of which."""

    # No option: each command declares a parameter of its own for one or several datasets.
    datasets: tuple[Path, ...] = ()
    configs: tuple[str, ...] = option(
        "Config or suite of the dataset; by default every suite, and every config that belongs to none. Repeatable.",
        flag="--config",
        panel=ITEMS_PANEL,
        default=(),
    )
    parts: tuple[str, ...] = option(
        "Config of a suite; by default all of the suite. Repeatable.", flag="--part", panel=ITEMS_PANEL, default=()
    )
    splits: tuple[str, ...] = option(
        "Split; by default all splits of the config. Repeatable.", flag="--split", panel=ITEMS_PANEL, default=()
    )
    limit: int | None = option(
        "Largest number of items per config, 0 for all; by default all, or what the task says. Sets such as minimal "
        "pairs are taken as a whole, and splits that only support a measurement are spared.",
        panel=ITEMS_PANEL,
        min=0,
    )
    task: str | None = option("Task, if several fit the items; see 'list'.", panel=ITEMS_PANEL)
    prompts: tuple[str, ...] = option(
        "Prompt, by default the task's first; CONFIG=PROMPT for one config or suite. Or a protocol: all its prompts. "
        "Repeatable: each config is asked with every one that its task has.",
        flag="--prompt",
        panel=ASKING_PANEL,
        default=(),
    )
    contexts: tuple[str, ...] | None = option(
        "Numbers of solved examples in the prompt, such as 0,2,8: asks with every set of that many; 8-NAME for 8 that "
        "are chosen by a rule of the task. With --prompt, those of its protocol. For tasks that show examples.",
        panel=ASKING_PANEL,
        read=names_in,
    )
    normalisation: Normalisation | None = option(NORMALISATION_HELP, panel=ASKING_PANEL, read=normalisation_named)
    measured_only: bool = False
    """True to leave out splits that only support a measurement, such as the examples that prompts show."""
    n_sampled: int | None = None
    """Number of items of each config that are read, for estimates alone; None to read them all."""

    @cached_property
    def configs_to_ask(self) -> Sequence[StudiedConfig]:
        """The configs and suites that are asked, each with its prompts.

        Raises:
            ConfigError: an option cannot be used, or a named prompt or config fits nothing, probably by mistake.
            DataError: a dataset cannot be read.
        """
        found: list[tuple[Path, Manifest, str, Task]] = []
        for dataset in map(dataset_at, dict.fromkeys(self.datasets)):
            manifest = read_manifest(dataset)
            for name in self.configs or _whole_names(manifest, self.parts):
                found.append((dataset, manifest, name, task_for(shape_listed(manifest, name), self.task)))
        of_tasks = {name for *_, task in found for name in (*task.prompts, *protocols(task))}
        general = [name for name in self.prompts if "=" not in name]
        # A prompt that no task has stays, to be refused with the names of those that exist.
        unknown = [name for name in general[:1] if name not in of_tasks]
        studied = []
        for folder, manifest, config, task in found:
            names = named_prompts(task, config, self.prompts) or unknown
            named = prompt_groups(task, self.contexts, names) if names else []
            studied.append(StudiedConfig(self, folder, manifest, config, task, named))
        used: set[str | None] = set()
        for one in studied:
            for prompt in one.usual:
                # With contexts, another prompt of the protocol chooses this one too.
                is_any = self.contexts is not None and prompt.protocol is not None
                alike = [own.id for own in one.task.prompts.values() if is_any and own.protocol == prompt.protocol]
                used |= {own for name in (prompt.id, prompt.protocol, *alike) for own in (name, f"{one.name}={name}")}
        for name in self.prompts:
            if name not in used:
                pairs = dict.fromkeys(f"{one.name} with {prompt.id}" for one in studied for prompt in one.usual)
                raise ConfigError(f"--prompt {name} is not used; the run would ask {', '.join(pairs)}; leave it out")
        return studied

    @cached_property
    def usual_plans(self) -> Sequence[Plan]:
        """The plans by the named prompts, or by the usual ones, whatever fits a model; says which parts are left out.

        Raises:
            ConfigError: as :attr:`configs_to_ask`, or a prompt does not go with the items or the normalisation.
            DataError: the data files are damaged.
        """
        with working("reading the items"):
            plans = [one.plan(prompt) for one in self.configs_to_ask for prompt in one.usual]
        for line in _told(self.configs_to_ask):
            note(line)
        return plans

    def plans(
        self,
        backend: Backend,
        *,
        benchmarks: Sequence[str] | None = None,
        skip: bool = False,
        preferred: Preferred | None = None,
        probe: bool = True,
        max_failure_rate: float = MAX_FAILURE_RATE,
    ) -> Plans:
        """Plan the configs with the prompts that fit a model.

        If the user names no prompts, the first that fit are taken, and a note says why.

        Args:
            backend: The model.
            benchmarks: Benchmarks whose datasets are asked; None for all.
            skip: True to leave out, with a note, what the model cannot be asked, and to ask the configs of a dataset by
                one protocol if one fits them all, as indices and ranks need. By default it is planned anyway, and
                refused before the first request.
            preferred: Prompts by which others were asked, which come before the usual ones; None for none.
            probe: False if a remote model must not be sent anything; the usual prompts are then taken.
            max_failure_rate: Share of requests that may be too long for the model.

        Raises:
            ConfigError: an option cannot be used, or an adapter is missing.
            DataError: the data files are damaged.
        """
        configs = [one for one in self.configs_to_ask if benchmarks is None or one.manifest.benchmark in benchmarks]
        asked: list[tuple[StudiedConfig, Sequence[Prompt]]] = []
        with steps("reading the items") as step:
            for number, (folder, of_dataset) in enumerate(groupby(configs, lambda one: one.folder)):
                step(f"choosing prompts for {folder.name}", number, len(self.datasets))
                own = list(of_dataset)
                # Adapters are trained for certain prompts.
                if backend.adapters is not None or (backend.is_remote and not probe):
                    prompts = [one.usual for one in own]
                elif skip:
                    prompts = _chosen_or_left_out(own, backend, max_failure_rate, preferred)
                else:
                    prompts = [_chosen_or_refused(one, backend, max_failure_rate) for one in own]
                asked += zip(own, prompts, strict=True)
            plans = tuple(one.plan(prompt).for_backend(backend) for one, prompts in asked for prompt in prompts)
        return Plans(self, backend, plans, tuple(_told(configs)), skip, max_failure_rate)

    def words(self, signature: Signature) -> str:
        """Return the options that choose the same items again, with the config and the prompt of a signature."""
        pairs: Sequence[tuple[str, object]] = (
            ("config", signature.config),
            *(("part", part) for part in self.parts),
            *(("split", split) for split in self.splits),
            ("limit", self.limit),
            ("task", self.task),
            ("prompt", signature.prompt),
        )
        return " ".join(f"--{name} {value}" for name, value in pairs if value is not None)


@dataclass(frozen=True)
class StudiedConfig:
    """A config or suite of a dataset, and the prompts that it may be asked with."""

    study: Study
    folder: Path
    manifest: Manifest
    name: str
    task: Task
    named: Sequence[Sequence[Prompt]]
    """Prompts of each name that the user gave for this config; empty if the choice is ours."""
    _selections: dict[frozenset[str], Selection] = field(default_factory=dict, repr=False)
    _plans: dict[str, Plan] = field(default_factory=dict, repr=False)
    _smaller: dict[tuple[frozenset[str], str], Selection] = field(default_factory=dict, repr=False)
    remarks: dict[str, None] = field(default_factory=dict, repr=False)
    """What to tell the user about it: prompts in the place of usual ones, and parts that are left out."""

    @cached_property
    def usual(self) -> Sequence[Prompt]:
        """The named prompts, or else the usual ones, whatever fits a model."""
        named = {prompt.id: prompt for group in self.named for prompt in group}
        if not named and (own := self.task.prompts.get(self.manifest.prompt or "")) is not None:
            return [own]
        return list(named.values()) or usual_prompts(self.task, self.study.contexts)

    @cached_property
    def groups(self) -> list[Sequence[Prompt]]:
        """The prompts among which the choice is ours, each group asked together: the usual ones come first."""
        groups = prompt_groups(self.task, self.study.contexts)
        return sorted(groups, key=lambda group: [one.id for one in group] != [one.id for one in self.usual])

    def plan(self, prompt: Prompt) -> Plan:
        """Return the plan that asks with a prompt.

        Raises:
            ConfigError: the prompt does not go with the splits or the normalisation.
            DataError: the data files are damaged.
        """
        if prompt.id not in self._plans:
            selection, left_out = with_examples(self._selection(prompt), self.task, prompt)
            if left_out:
                why = left_out_words(left_out)
                # Prompts that leave out the same parts share the selection, which is hashed once.
                selection = self._smaller.setdefault((prompt.unread_splits, why), selection)
                self.remarks[f"parts left out with {context_name(prompt)} examples: {why}"] = None
            plan = Plan(selection, self.task, prompt, self.study.normalisation)
            _ = plan.normalisation  # Raises before a model is loaded if the prompt cannot have it.
            self._plans[prompt.id] = plan
        return self._plans[prompt.id]

    def _selection(self, prompt: Prompt) -> Selection:
        """Return the items that are asked with a prompt, read once for all prompts that leave out the same splits."""
        study, without, support = self.study, prompt.unread_splits, self.task.support_splits
        for split in study.splits:
            if split in without:
                raise ConfigError(f"--split {split}: no measure reads it with prompt '{prompt.id}'; leave it out")
        if without not in self._selections:
            splits = study.splits
            if study.measured_only:
                own = {*(self.manifest.parts(self.name) or (self.name,))}
                of_configs = dict.fromkeys(entry.split for entry in self.manifest.splits if entry.config in own)
                splits = tuple(split for split in of_configs if split not in support)
            # A limit of 0 asks for all items, even if the task has a default limit.
            limit = self.task.default_limit if study.limit is None else study.limit or None
            self._selections[without] = select(
                self.folder,
                self.manifest,
                self.name,
                splits=splits,
                parts=study.parts,
                limit=limit,
                support=support,
                without=without,
                n_sampled=study.n_sampled,
            )
        return self._selections[without]

    def choose(
        self, groups: Sequence[Sequence[Prompt]], backend: Backend, max_failure_rate: float
    ) -> tuple[Sequence[Prompt], list[str]]:
        """Choose the first group of prompts that fits a model, by a sample of the items; none if none does.

        Returns:
            The group, and why each one before it does not fit, in words that begin with its name.
        """
        first = self.usual[0]
        return choose_prompts(Plan(self._selection(first), self.task, first), groups, backend, max_failure_rate)


@dataclass(frozen=True)
class Plans:
    """What a model is asked under a study."""

    study: Study
    backend: Backend
    plans: tuple[Plan, ...]
    notes: tuple[str, ...]
    """A line for each prompt in the place of a usual one, and for what is left out, with the configs."""
    skip: bool
    max_failure_rate: float

    def estimate(
        self, *, root: Path, cache: Path | None = None, name: str | None = None, probed: bool = False
    ) -> list[Estimate]:
        """Estimate what asking takes, without asking anything.

        Args:
            root: Folder of all runs, whose answers are not asked for again and tell the pace.
            cache: File of a cache of answers.
            name: Name to show for a remote model, whose id is known only once it has been asked.
            probed: True if a remote model has been asked, so that its answers can be looked up.

        Raises:
            ConfigError: the backend cannot ask what a plan needs.
            RunError: the store of an earlier run, or the cache, cannot be read.
        """
        # Imported here, because asking needs none of it.
        from evaluators.runs.plan.estimate import estimate, sampled_estimate

        stores, backend, n_sampled = AnswerStores(root=root, cache=cache), self.backend, self.study.n_sampled
        if n_sampled is not None:
            name = name or backend.model.id
            return [sampled_estimate(plan, backend, stores, name, n_items=n_sampled) for plan in self.plans]
        name = name or ("the model" if backend.is_remote else backend.model.id)
        # Nothing is sent to an endpoint, not even a probe.
        fitting = self._fitting(stores, probe=False)
        return [estimate(plan, backend, stores, name, probed=probed) for plan in fitting]

    def ask(
        self,
        *,
        root: Path,
        cache: Path | None = None,
        scorers: Sequence[TextScorer] = (),
        named_scorers: Sequence[str] = (),
        together: bool = False,
    ) -> Iterator[Finished]:
        """Ask what no earlier run has asked, and yield each run when it is finished.

        Args:
            root: Folder of all runs.
            cache: Store that several runs share; None for none.
            scorers: Scorers of the texts, for tasks whose metrics read scores.
            named_scorers: Their names, if the user chose them; scores of other ones are then dropped.
            together: True to show one bar for all runs instead of one for each.

        Raises:
            ConfigError: the backend cannot ask what a plan needs.
            RunError: a run ended early; answers are kept.
        """
        # Imported here, because planning needs none of it.
        from evaluators.runs.ask.pipeline import RunOptions, run

        fitting = self._fitting(AnswerStores(root=root, cache=cache))
        n_items = sum(plan.selection.n_items for plan in fitting)
        with progress(f"asking {self.backend.model.id}", n_items) if together else nullcontext() as advance:
            for plan in fitting:
                command = run_command(
                    plan.signature,
                    self.backend,
                    only=self.study.parts,
                    task=self.study.task,
                    normalisation=plan.chosen_normalisation,
                    limit=plan.selection.limit,
                )
                options = RunOptions(
                    root=root,
                    command=with_scorers(command, named_scorers if isinstance(plan.task, ReadsScores) else ()),
                    max_failure_rate=self.max_failure_rate,
                    cache=cache,
                    scorers=scorers,
                    keep_scores=not named_scorers,
                    advance=advance,
                )
                finished = run(plan, self.backend, options)
                plan.forget()
                yield finished

    def _fitting(self, stores: AnswerStores, *, probe: bool = True) -> list[Plan]:
        return check_context(self.plans, self.backend, stores, self.max_failure_rate, probe=probe, leave_out=self.skip)


def _whole_names(manifest: Manifest, parts: Sequence[str]) -> Sequence[str]:
    """Return the configs and suites to ask if none is named; with ``--part``, the suites that have these parts."""
    if not parts or len(manifest.suites) == 1:
        return [suite.name for suite in manifest.suites] if parts else manifest.whole_names
    suites = [suite.name for suite in manifest.suites if {*parts} <= {*suite.configs}]
    if not suites:
        have = ", ".join(suite.name for suite in manifest.suites) or "none"
        raise ConfigError(f"no suite of dataset '{manifest.name}' has all of --part {', '.join(parts)}; suites: {have}")
    return suites


def _told(configs: Iterable[StudiedConfig]) -> list[str]:
    """Return what is to be told about some configs, a line for each text with all its configs, and only once."""
    of_text: dict[str, list[str]] = {}
    for one in configs:
        for text in one.remarks:
            of_text.setdefault(text, []).append(f"{one.manifest.name} {one.name}")
        one.remarks.clear()
    return [f"{', '.join(names)}: {text}" for text, names in of_text.items()]


def _chosen_or_refused(one: StudiedConfig, backend: Backend, max_failure_rate: float) -> Sequence[Prompt]:
    """Return the prompts of a config: those named, or the first that fit; of none, most that do, which is refused."""
    groups = one.groups
    if one.named or not groups:
        return one.usual
    prompts, passed_over = one.choose(groups, backend, max_failure_rate)
    if not prompts:
        # Of the first with most prompts that fit, the others are left out; if none fits, all are refused.
        counts = [
            sum(bool(one.choose([[prompt]], backend, max_failure_rate)[0]) for prompt in group) for group in groups
        ]
        best = counts.index(max(counts))
        prompts, passed_over = groups[best], passed_over[:best]
    if not passed_over:
        return one.usual
    one.remarks[f"{group_name(prompts)}, because {passed_over[0]}"] = None
    return prompts


def _chosen_or_left_out(
    configs: Sequence[StudiedConfig], backend: Backend, max_failure_rate: float, preferred: Preferred | None
) -> list[Sequence[Prompt]]:
    """Return the prompts of each config of a dataset: of one protocol if there is one that fits them all.

    Indices and ranks take the results of one protocol together. A chat, for instance, is asked by the usual prompts of
    some configs and by other prompts of the others, where the usual ones are texts to continue.
    """
    choices: list[tuple[Sequence[Prompt], list[str]]] = []
    groups_of: list[list[Sequence[Prompt]]] = []
    others_of = [{} if preferred is None else preferred(one.manifest, one.name) for one in configs]
    for one, others in zip(configs, others_of, strict=True):
        groups = sorted(
            [] if one.named else one.groups,
            key=lambda group: [name != _asker(group, others) for name in others],
        )
        groups_of.append(groups)
        if one.named:
            of_names = [one.choose([group], backend, max_failure_rate) for group in one.named]
            named = {prompt.id: prompt for prompts, _ in of_names for prompt in prompts}
            choices.append((list(named.values()), [why for _, passed_over in of_names for why in passed_over]))
        else:
            choices.append(one.choose(groups, backend, max_failure_rate))
    protocols_chosen = dict.fromkeys(prompts[0].protocol for prompts, _ in choices if prompts)
    for protocol in protocols_chosen if len(protocols_chosen) > 1 else ():
        same = []
        for one, chosen, groups in zip(configs, choices, groups_of, strict=True):
            if chosen[0] and chosen[0][0].protocol != protocol:
                of_protocol = [group for group in groups if group[0].protocol == protocol]
                why = f"{group_name(chosen[0])} has another protocol than the other configs"
                chosen = one.choose(of_protocol, backend, max_failure_rate)[0], [why]
            same.append(chosen)
        if protocol is not None and all(prompts for prompts, _ in same):
            choices = same
            break
    for one, (prompts, passed_over), others in zip(configs, choices, others_of, strict=True):
        asker = _asker(prompts, others)
        if not prompts:
            one.remarks[f"not asked: {'; '.join(passed_over)}"] = None
        elif one.named and passed_over:
            one.remarks[f"not asked with all prompts: {'; '.join(passed_over)}"] = None
        elif passed_over:
            one.remarks[f"{group_name(prompts)}, because {passed_over[0]}"] = None
        elif not one.named and asker is not None:
            is_usual = list(prompts) == list(one.groups[0])
            # Without the first of several that asked otherwise, another prompt would have been taken.
            if not is_usual or not _asked_alike(others):
                one.remarks[f"{group_name(prompts)}, by which {asker} asked"] = None
    return [prompts for prompts, _ in choices]


def _asked_alike(others: Mapping[str, frozenset[str]]) -> bool:
    """Return True if all of others that were asked share a prompt, or none was asked."""
    asked = [prompts for prompts in others.values() if prompts]
    return not asked or bool(frozenset.intersection(*asked))


def _asker(prompts: Sequence[Prompt], others: Mapping[str, frozenset[str]]) -> str | None:
    """Return the first of others that were asked by all of some prompts."""
    return next((name for name, asked in others.items() if asked >= {prompt.id for prompt in prompts}), None)


def scorers_of(tasks: Iterable[Task], names: Sequence[str] | None) -> tuple[TextScorer, ...]:
    """Open the scorers that some tasks need, none if no task reads scores of texts, and print which are missing.

    Args:
        tasks: The tasks.
        names: The names that the user chose; None for the default ones.

    Raises:
        ConfigError: there is no such scorer, or no task reads its scores.
        MissingExtraError: a named scorer needs a library that is not installed.
    """
    tasks = list(tasks)
    kinds = {kind for task in tasks if isinstance(task, ReadsScores) for kind in task.score_kinds}
    if not kinds:
        if names is not None:
            of_tasks = ", ".join(dict.fromkeys(task.name for task in tasks))
            raise ConfigError(f"--scorer: task {of_tasks} reads no scores of texts; leave it out")
        return ()
    opened = open_scorers(names, kinds)
    for line in opened.missing:
        print(line)
    return opened.scorers


_N_SAMPLED = 64
"""Number of items by which prompts are judged to be too long."""


def named_prompts(task: Task, config: str, given: Sequence[str]) -> list[str]:
    """Return the prompts and protocols among values of ``--prompt`` that choose prompts for a config.

    ``CONFIG=PROMPT`` chooses a prompt for one config, which is then asked with no other.
    """
    pairs = [name.partition("=") for name in dict.fromkeys(given)]
    own = [prompt for name, equals, prompt in pairs if equals and name == config]
    return own or [name for name, equals, _ in pairs if not equals and name in {*task.prompts, *protocols(task)}]


def prompt_groups(
    task: Task, contexts: Sequence[str] | None = None, named: Sequence[str] = ()
) -> list[Sequence[Prompt]]:
    """Return the prompts that are asked together: of each name, or the default ones and then those in their place.

    A prompt stands alone, unless the task shows examples: then all of its protocol in the chosen contexts are asked.

    Raises:
        ConfigError: a named prompt does not exist.
    """
    if named:
        return [_prompts(task, name, contexts) for name in named]
    names = dict.fromkeys(
        (prompt.protocol if isinstance(task, ShowsExamples) else None) or prompt.id
        for prompt in task.prompts.values()
        if prompt.requires != "import"
    )
    groups: list[Sequence[Prompt]] = []
    for name in names:
        # A protocol need not have prompts in every context.
        with suppress(ConfigError):
            groups.append(_prompts(task, name, contexts))
    return groups


def usual_prompts(task: Task, contexts: Sequence[str] | None = None) -> Sequence[Prompt]:
    """Return the prompts that are asked where the user names none: the first, or all of its protocol in the contexts.

    Raises:
        ConfigError: the protocol has no such context, or the task shows no examples.
    """
    first = prompt_of(task, None)
    return _prompts(task, (first.protocol if isinstance(task, ShowsExamples) else None) or first.id, contexts)


def _prompts(task: Task, name: str, contexts: Sequence[str] | None) -> Sequence[Prompt]:
    """Return the prompts of a name, a prompt or a protocol, in the contexts that the user chooses; None if he does not.

    A context is a number of examples such as ``8``, ``8-RULE`` or ``8-more``.
    """
    if not isinstance(task, ShowsExamples):
        if contexts is not None:
            raise ConfigError(f"--contexts {','.join(contexts)}: task '{task.name}' shows no examples; leave it out")
        return [prompt_of(task, name)]
    if name not in protocols(task) and contexts is None:
        return [prompt_of(task, name)]
    protocol = name if name in protocols(task) else prompt_of(task, name).protocol
    of_protocol = [prompt for prompt in task.prompts.values() if prompt.protocol == protocol]
    have = dict.fromkeys(map(context_name, of_protocol))
    chosen = contexts or [*map(str, task.default_contexts)]
    for context in chosen:
        if context not in have:
            raise ConfigError(
                f"--contexts: no prompt of protocol '{protocol}' has context '{context}'; have, separated by commas: "
                f"{', '.join(have)}"
            )
    return [prompt for prompt in of_protocol if context_name(prompt) in chosen]


def protocols(task: Task) -> frozenset[str | None]:
    """Return the protocols of a task whose prompts show examples; empty for other tasks."""
    is_shown = isinstance(task, ShowsExamples)
    return frozenset(prompt.protocol for prompt in task.prompts.values() if is_shown and prompt.protocol is not None)


def context_name(prompt: Prompt) -> str:
    """Return the number of examples that a prompt shows, and the rule that chooses them, if any, or ``more``."""
    return "-".join(filter(None, (str(prompt.n_examples), prompt.example_rule, "more" if prompt.is_extra else None)))


def choose_prompts(
    plan: Plan, groups: Sequence[Sequence[Prompt]], backend: Backend, max_failure_rate: float
) -> tuple[Sequence[Prompt], list[str]]:
    """Choose the first group of prompts that a model can be asked with; none if there is no such group.

    The preferred groups come first. The prompt of the plan does not matter, and a remote backend is probed.

    Returns:
        The group, and why each one before it cannot, in words that begin with its name: ``NAME needs up to 1,284
        tokens, and the model's context has 512``.
    """
    sample = replace(plan, selection=sampled(plan.selection, _N_SAMPLED))
    passed_over: list[str] = []
    for group in groups:
        obstacles = (_obstacle(replace(sample, prompt=prompt), backend, max_failure_rate) for prompt in group)
        why = next(filter(None, obstacles), None)
        if why is None:
            return group, passed_over
        passed_over.append(f"{group_name(group)} {why}")
    return (), passed_over


def group_name(group: Sequence[Prompt]) -> str:
    """Return the name of prompts that are asked together: that of a single one, or the protocol of several."""
    return group[0].id if len(group) == 1 or group[0].protocol is None else group[0].protocol


def _obstacle(plan: Plan, backend: Backend, max_failure_rate: float) -> str | None:
    """Return why a model cannot be asked with the prompt of a plan; None if it can."""
    prompt = plan.prompt
    if missing := sorted(prompt.needs - backend.capabilities):
        reasons = "; ".join(f"{name}: {reason}" for name, reason in backend.runtime.obstacles.items())
        return f"needs {' and '.join(missing)}" + (f" ({reasons})" if reasons else "")
    if (why := why_no_message(prompt, backend)) is not None:
        return f"{why}, and the model is sent messages of a chat"
    try:
        plan = replace(plan, selection=with_examples(plan.selection, plan.task, prompt)[0]).for_backend(backend)
        if (
            prompt.requires == "option_logprobs"
            and backend.scores_first_token_only
            and any(
                len(option.strip()) > 1  # Unlike those of letters, their first tokens may be the same.
                for part in plan.parts
                for request in chain.from_iterable(part.requests)
                for option in (request.options if isinstance(request, ChoiceRequest) else ())
            )
        ):
            return "needs log-probabilities of whole options, and the endpoint gives those of first tokens"
        if backend.context_tokens is None:
            return None
        ruler = Ruler(backend, backend.context_tokens)
        short = shortfall(plan, ruler)
    except ConfigError as error:
        return f"cannot be asked: {error}"
    if short.exceeds(max_failure_rate):
        return f"needs up to {short.longest:,} tokens, and the model's context has {ruler.room:,}"
    return None
