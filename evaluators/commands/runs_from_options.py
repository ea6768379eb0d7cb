"""Asks a model as a user's options say: opens backends and scorers, and makes a run for each config or suite."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain, groupby

from biasboard.ground.errors import ConfigError
from biasboard.ground.plain_text import listed
from biasboard.ground.progress import note, working
from evaluators.backend import Backend, check_model_id, open_backend
from evaluators.backend_options import BackendOptions
from evaluators.benchmark import benchmarks, load_benchmark
from evaluators.commands.plans_from_options import named_prompts, plans_of, prompt_groups, scorers_of
from evaluators.commands.printed_results import print_next, report, report_many, runs_document
from evaluators.commands.shared_options import RunChoice
from evaluators.runs.ask.context_limit import check_context
from evaluators.runs.ask.pipeline import Finished, run
from evaluators.runs.ask.prompt_choice import PromptChoice, choose_prompts, group_name
from evaluators.runs.measure.unread_answers import check_read
from evaluators.runs.plan.earlier_answers import AnswerStores
from evaluators.runs.plan.estimate import Estimate, estimate
from evaluators.runs.plan.plan import Plan, run_command, with_examples
from evaluators.runs.plan.run_options import RunOptions
from evaluators.scorer import with_scorers
from evaluators.stores.maintenance import check_cache
from schemas.printed import Outcome

_MOST_NAMES = 4
_ALL = "all"
"""Model name for all baselines of a benchmark."""


def ask(choice: RunChoice, options: BackendOptions, *, verbose: bool = False) -> Outcome:
    """Ask a model about every chosen item, and print the results.

    Args:
        choice: The items and how they are asked.
        options: The options of the backend.
        verbose: True to print whole tables instead of headline metrics.

    Returns:
        The finished runs. With them comes the error of a run that ended early, or none of whose answers could be read:
        a program must learn of the runs before it.
    """
    finished: list[Finished] = []
    is_brief = choice.model == _ALL
    error: BaseException | None = None
    try:
        for finished_run in ask_all(choice, options):
            finished.append(finished_run)
            if not is_brief:
                report(*finished_run, verbose=verbose)
        if is_brief:
            report_many([finished_run.result for finished_run in finished])
        check_read(finished)
        if not is_brief and not verbose:
            print("all measures and groups: in the files result.json, or with --verbose, which asks nothing again")
        print_next(choice.out, (finished_run.result for finished_run in finished))
    except BaseException as raised:
        error = raised
    return Outcome(runs_document((each.folder, each.result) for each in finished), error=error)


def ask_all(choice: RunChoice, options: BackendOptions) -> Iterator[Finished]:
    """Ask a model about every chosen item, and yield each run when it is finished.

    Raises:
        ConfigError: an option cannot be used; nothing was asked.
        RunError: a run ended early; answers are kept.
    """
    plans = _checked_plans(choice, options)
    scorers = scorers_of(plans, choice.scorers)
    stores = AnswerStores(root=choice.out, cache=choice.cache)
    for backend, of_backend in _opened(plans, choice, options):
        for plan in check_context(of_backend, backend, stores, choice.max_failure_rate):
            run_options = RunOptions(
                root=choice.out,
                command=_command(plan, backend, choice),
                max_failure_rate=choice.max_failure_rate,
                cache=choice.cache,
                scorers=scorers,
                keep_scores=not choice.scorers,
            )
            finished = run(plan, backend, run_options)
            plan.forget()
            yield finished


def estimated(choice: RunChoice, options: BackendOptions) -> list[Estimate]:
    """Estimate what each run would take, without asking anything.

    Raises:
        ConfigError: an option cannot be used.
    """
    plans = _checked_plans(choice, options)
    stores, model_name = AnswerStores(root=choice.out, cache=choice.cache), options.name or choice.model
    estimates = []
    for backend, of_backend in _opened(plans, choice, options, probe=False):
        # A dry run sends nothing to an endpoint, not even a probe.
        fitting = check_context(of_backend, backend, stores, choice.max_failure_rate, probe=False)
        estimates += [estimate(plan, backend, stores, model_name) for plan in fitting]
    return estimates


def _checked_plans(choice: RunChoice, options: BackendOptions) -> list[Plan]:
    """Return the plans, after checking the cache and the model's name: all of this comes before a model is loaded."""
    if choice.cache is not None:
        check_cache(choice.cache)
    with working("reading the items"):
        plans = plans_of(choice)
    if options.name is not None:
        check_model_id(options.name)
    _say_that_few_items_give_no_rank(plans, choice)
    return plans


def _say_that_few_items_give_no_rank(plans: Sequence[Plan], choice: RunChoice) -> None:
    """Print a line if the user's limit leaves out items that the board needs, before any of the others is asked."""
    if not choice.limit or choice.backend == "baseline":
        return
    few = dict.fromkeys(
        plan.selection.config
        for plan in plans
        for part in plan.selection.parts
        if part.max_items < replace(part, limit=plan.task.default_limit).max_items
    )
    if few:
        note(
            f"--limit {choice.limit} leaves out items of {listed(list(few), most=_MOST_NAMES)}, so that this run gets "
            "no rank; without it, only the others are asked later"
        )


def _opened(
    plans: Sequence[Plan], choice: RunChoice, options: BackendOptions, *, probe: bool = True
) -> Iterator[tuple[Backend, Sequence[Plan]]]:
    """Open one model after the other, and yield each with its plans.

    The models are the named one, or all baselines of each plan's benchmark. If the user names no prompt, those that fit
    the model are taken; for a remote one that must not be probed, the default ones.
    """
    listed = {name: [choice.model] for name in dict.fromkeys(plan.selection.manifest.benchmark for plan in plans)}
    if choice.backend == "baseline" and choice.model == _ALL:
        listed = {name: _baselines(name) for name in listed}
    for model in dict.fromkeys(chain.from_iterable(listed.values())):
        with working(f"opening {options.name or model}"):
            backend = open_backend(choice.backend, model, options)
        of_model = [plan for plan in plans if model in listed[plan.selection.manifest.benchmark]]
        fitting = _fitting(of_model, backend, choice, probe=probe)
        yield backend, [plan.for_backend(backend) for plan in fitting]


def _fitting(plans: Sequence[Plan], backend: Backend, choice: RunChoice, *, probe: bool) -> list[Plan]:
    """Return the plans with the prompts that fit the model, where the default ones do not, and say so."""
    if backend.adapters is not None or (backend.is_remote and not probe):
        return list(plans)  # Adapters are trained for certain prompts.
    fitting: list[Plan] = []
    for _, of_config in groupby(plans, lambda plan: (plan.selection.manifest.name, plan.selection.config)):
        group = list(of_config)
        first = group[0]
        if named_prompts(first.task, first.selection.config, choice.prompts):
            fitting += group
            continue
        groups = prompt_groups(first.task, choice.contexts)
        chosen = choose_prompts(first, groups, backend, choice.max_failure_rate)
        if not chosen.prompts:
            # Of the first with most prompts that fit, the others are left out; if none fits, all are refused.
            fits = partial(choose_prompts, first, backend=backend, max_failure_rate=choice.max_failure_rate)
            counts = [sum(bool(fits(groups=[[prompt]]).prompts) for prompt in each) for each in groups]
            best = counts.index(max(counts))
            chosen = PromptChoice(tuple(groups[best]), chosen.passed_over[:best])
        if chosen.passed_over:
            # Prompts that choose examples by a rule have left out parts that others are asked about.
            whole = max(group, key=lambda plan: len(plan.selection.parts))
            group = [
                replace(whole, prompt=prompt, selection=with_examples(whole.selection, whole.task, prompt)[0])
                for prompt in chosen.prompts
            ]
            default = chosen.passed_over[0]
            note(
                f"config '{first.selection.config}': prompt {group_name(chosen.prompts)} in place of {default.name}, "
                f"which {default.why}"
            )
        fitting += group
    return fitting


def _baselines(name: str) -> list[str]:
    """Return the names of the baselines of a benchmark."""
    benchmark = load_benchmark(name)
    if not benchmark.baselines:
        listed = dict.fromkeys(baseline.name for other in benchmarks() for baseline in other.baselines)
        raise ConfigError(f"benchmark '{benchmark.name}' lists no baselines; name one that fits: {', '.join(listed)}")
    return [baseline.name for baseline in benchmark.baselines]


def _command(plan: Plan, backend: Backend, choice: RunChoice) -> str:
    """Return the command line that reproduces a run, without paths of this machine."""
    command = run_command(
        plan.signature,
        backend,
        only=choice.parts,
        task=choice.task,
        normalisation=plan.chosen_normalisation,
        limit=plan.selection.limit,
    )
    return with_scorers(command, choice.scorers or () if plan.task.reads_scores else ())
