"""Turns requests and responses into records, and reports those that failed or could not be read."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cache
from itertools import chain
from pathlib import Path

import numpy as np
from pydantic import TypeAdapter

from biasboard.ground.errors import ConfigError, RunError
from biasboard.ground.plain_text import one_line, without_keys
from biasboard.ground.progress import note
from evaluators.backend import ChoiceRequest, GenerateRequest, Request, Response
from evaluators.runs.plan.plan import AskedPart, Plan, PlannedPart
from evaluators.statistics.option_scores import FirstTokenShares, likeliest, why_impossible
from evaluators.task import Prompt, load_task, quoted
from evaluators.thinking import split_thinking
from schemas.documents.base import shown
from schemas.documents.record import Exchange, Record
from schemas.documents.result import Model, Result
from schemas.files.record_columns import RecordColumns
from schemas.folders.run_folder import StoredParts

_TEXTS = ("text", "thinking", "finish_reason", "error")
"""Fields of a response that a model or an endpoint wrote."""
_LONGEST = {"finish_reason": 100, "error": 10_000}
_BYTES_OF_TOKEN = 256
"""Size that no token exceeds: the longest of usual vocabularies are 128 spaces."""
_ANY_ANSWER = 64_000
"""Size in bytes of an answer that may come where a server ignores the limit on tokens."""
_MOST_THINKING = 500_000
"""Number of tokens beyond those of an answer that no model thinks with."""
_FORM = TypeAdapter(Response)
_NUMBERS = tuple(field.name for field in fields(Response) if field.name not in _TEXTS)


def records_of(
    plan: Plan,
    part: PlannedPart,
    requests: Sequence[Sequence[Request]],
    responses: Sequence[Sequence[Response]],
    *,
    chat: bool,
) -> Iterator[Record]:
    """Yield one record per item of a part from requests and responses.

    The requests may differ from the plan's: imported answers may belong to other requests.

    ``chat`` is True if options were scored behind a chat template.
    """
    task = plan.task
    show = plan.selection.manifest.redistributable
    for (split, item), facts, asked, answers in zip(part.items, part.facts, requests, responses, strict=True):
        exchanges = tuple(
            exchange_of(request, answer, show_prompt=show, chat=chat, is_continued=plan.prompt.follow_up is not None)
            for request, answer in zip(asked, answers, strict=True)
        )
        read = task.reading(exchanges, plan.normalisation, plan.prompt.id)
        yield Record(
            item_id=item.item_id,
            config=part.config,
            split=split,
            status=read.status,
            truncated=any(exchange.finish_reason == "length" for exchange in exchanges),
            reason=read.reason,
            cluster=facts.cluster,
            pair_id=facts.pair_id,
            target=facts.target,
            reference=facts.reference,
            groups=dict(facts.groups),
            exchanges=exchanges,
            reading=read.reading,
        )


def first_asked(records: RecordColumns, prompt: Prompt) -> RecordColumns:
    """Return records with their first requests only: the others follow from answers, and not from the items alone."""
    if prompt.follow_up is None:
        return records
    return records.only_exchanges(records.exchanges["kind"].coded.is_one_of("generate"))


def well_formed(request: Request, response: Response) -> Response:
    """Return a response with values of the types that a record holds: what is stored is never asked again.

    A backend may leave out the token counts of options and the log-probabilities of their ends, which are unknown then.

    Raises:
        ConfigError: it has others, as a backend that is a plug-in may give.
    """
    n = len(request.options) if isinstance(request, ChoiceRequest) else 0
    try:
        texts = {name: getattr(response, name) for name in _TEXTS}
        form = _FORM.validate_python({name: getattr(response, name) for name in _NUMBERS})
        if form.status == "answered" and len(form.option_logprobs) == n:
            unknown = (None,) * n
            ends, sizes = form.option_end_logprobs or unknown, form.option_token_counts or unknown
            form = replace(form, option_end_logprobs=ends, option_token_counts=sizes)
        lists = form.option_logprobs, form.option_end_logprobs, form.option_token_counts
        counts = *form.option_token_counts, form.n_moved_tokens, form.n_prompt_tokens, form.n_completion_tokens
        logprobs = *form.option_logprobs, *form.option_end_logprobs, form.text_logprob
        are_possible = all(0 <= count < 1 << 53 for count in filter(None, counts)) and all(
            logprob < 0 for logprob in filter(None, logprobs)
        )
        has_all = {*map(len, lists)} <= ({n} if form.status == "answered" else {0, n})
        are_texts = all(isinstance(text, str | None) for text in texts.values())
        if has_all and are_texts and are_possible:
            return replace(form, **texts)
        fault = shown((*lists, counts) if are_texts else texts)
    except (AttributeError, ValueError) as error:
        fault = one_line(error, most=200)
    remedy = "correct the backend, or use --dtype float32 if a number is NaN"
    raise ConfigError(f"the backend gives a response that no record can hold: {fault}; {remedy}")


def storable(response: Response, without_keys: Callable[[str], str] = without_keys) -> Response:
    """Return a response whose texts hold no key, are no longer than any reason, and can be written as UTF-8.

    An endpoint may cut a character in two. The resulting lone surrogates are replaced by U+FFFD.
    """
    texts = {name: text for name in _TEXTS if (text := getattr(response, name)) is not None}
    clean = {
        name: without_keys(text.encode("utf-16", "surrogatepass").decode("utf-16", "replace"))[: _LONGEST.get(name)]
        for name, text in texts.items()
    }
    return response if clean == texts else replace(response, **clean)  # type: ignore[arg-type]


def sound(request: Request, response: Response) -> Response:
    """Return a response as a failed one if no model can have given it, so that a run ends before it pays for more.

    A number of tokens that no model can have used becomes unknown.
    """
    if isinstance(request, ChoiceRequest):
        fault = why_impossible(request.options, response.option_logprobs, response.option_is_bound)
    else:
        n_used, text = response.n_completion_tokens, split_thinking(response.text or "").answer
        fault = why_too_long(text, None, request.max_tokens)
        if fault is None and why_too_long(text, n_used, request.max_tokens):
            _warn_of_tokens()
            return replace(response, n_completion_tokens=None)
    return response if fault is None else Response(status="failed", error=f"{fault}; ask who runs the endpoint")


def why_too_long(text: str, n_used: int | None, max_tokens: int) -> str | None:
    """Return why an answer cannot have this length; None if it can.

    Args:
        text: The answer, without what the model thought.
        n_used: Number of tokens that the model is said to have written, thoughts included; None if unknown.
        max_tokens: The limit of the request.
    """
    n_bytes = len(text.encode())
    if n_bytes > max(_BYTES_OF_TOKEN * max_tokens, _ANY_ANSWER):
        return f"the answer has {n_bytes:,} bytes, more than {max_tokens} tokens can hold"
    if n_used and (n_used > max_tokens + _MOST_THINKING or _BYTES_OF_TOKEN * n_used < n_bytes):
        return f"an answer of {n_bytes:,} bytes to at most {max_tokens} tokens is said to have {n_used:,} tokens"
    return None


@cache
def _warn_of_tokens() -> None:
    note("warning: the endpoint states numbers of tokens that its answers cannot have; they are taken as unknown")


def exchange_of(
    request: Request, response: Response, *, show_prompt: bool, chat: bool, is_continued: bool = False
) -> Exchange:
    """Return a request and its response as the exchange that a record stores.

    Args:
        request: The request.
        response: The response, of whose text only the answer is kept: what the model thought stays in the store.
        show_prompt: True if the licence of the dataset allows to show the prompt.
        chat: True if options were scored behind a chat template.
        is_continued: True if options are scored after the text, which is then kept as the model reads it again.
    """
    text = response.text
    if text is not None and not is_continued:
        text = split_thinking(text).answer
    choice = request if isinstance(request, ChoiceRequest) else None
    options = () if choice is None else choice.options
    strips = chat and choice is not None and not choice.n_begun
    return Exchange(
        kind="generate" if choice is None else "choice",
        # Random digits, which no compression makes smaller, would be half of a file.
        request_sha256=None if choice is not None and show_prompt else request.sha256,
        prompt=request.prompt if show_prompt else None,
        outcomes=request.outcomes,
        options=options,
        option_logprobs=response.option_logprobs,
        option_end_logprobs=response.option_end_logprobs,
        option_token_counts=response.option_token_counts,
        # Behind a chat template, an option is scored without the space that separates it from the prompt.
        option_byte_counts=tuple(len((option.lstrip() if strips else option).encode()) for option in options),
        option_is_bound=response.option_is_bound,
        n_moved_tokens=response.n_moved_tokens,
        text=text,
        finish_reason=response.finish_reason,
        sample=request.sample if isinstance(request, GenerateRequest) else None,
        n_prompt_tokens=response.n_prompt_tokens,
        n_completion_tokens=response.n_completion_tokens,
        status=response.status,
        error=response.error,
        text_logprob=response.text_logprob,
    )


@dataclass(slots=True)
class FailureCount:
    """Counts records that failed, whether in asking or in reading."""

    n: int = 0
    n_failed: int = 0
    last_reason: str | None = None

    def add(self, records: RecordColumns) -> None:
        """Count more records."""
        failed = np.flatnonzero(records.columns["status"].coded.is_one_of("failed")).tolist()
        self.n += len(records)
        self.n_failed += len(failed)
        if failed:
            self.last_reason = records.columns["reason"].texts[failed[-1]]

    def check(self, max_failure_rate: float) -> None:
        """Check that not too many records failed.

        Raises:
            RunError: more records failed than the rate allows.
        """
        if self.n_failed > max_failure_rate * self.n:
            raise RunError(
                f"{self.n_failed} of {self.n} items failed, more than the share of {max_failure_rate:g} that may (in "
                f"run and rescore: --max-failure-rate): {self.last_reason}; answers are kept, no result was written"
            )


_MANY = 0.05
"""Share of unread items from which the console mentions them; a model with more unread gets no rank."""
_A_FEW = 3
_MOST_NAMED = 2
"""Largest number of prompts that advice names."""
_MOST_SHOWN = 80
_N_LOOKED_AT = 20
"""Number of first items that a run checks. If one answer in five can be read, all of the first twenty are unread in
only one run of a hundred (0.8^20 = 0.012)."""


def quoted_line(text: str) -> str:
    r"""Return a text in quotes on one line: shortened, and with control characters as escapes.

    >>> quoted_line("She\nsaid" + 90 * "!")[:14]
    "'She\\nsaid!!!!"
    """
    return repr(text if len(text) <= _MOST_SHOWN else f"{text[:_MOST_SHOWN]}…")


def answer_shown(item_id: str, exchanges: Sequence[Exchange], target: str | None, reason: str | None = None) -> str:
    """Return a clause with an answer to an item and the expected answer.

    Args:
        item_id: Id of the item.
        exchanges: All questions about the item, with their answers.
        target: The expected answer; None if there is none.
        reason: The reason why the item has no reading. The answer that it quotes is shown, otherwise the first.
    """
    texts = [exchange.text for exchange in exchanges if exchange.text is not None]
    without = [exchange for exchange in exchanges if exchange.status != "answered"]
    blamed = [text for text in texts if reason is not None and quoted(text) in reason]
    if texts and any(texts) and (blamed or reason not in {exchange.error for exchange in without}):
        answer = f"was answered {quoted_line((blamed or texts)[0])}"
    elif without:
        verb = "was declined" if without[0].status == "refused" else "has failed"
        answer = f"{verb}: {quoted_line(without[0].error or 'no reason given')}"
    else:
        answer = f"could not be read: {reason}"
    return f"item '{item_id}' {answer}" + ("" if target is None else f", where {quoted_line(target)} was expected")


def remedy(prompt: Prompt, others: Sequence[Prompt], *, in_chat: bool) -> str:
    """Return what a user can try if answers to a prompt cannot be read.

    ``others`` are the other prompts that work with the model.
    """
    if prompt.scoring != "generation":
        # The probability is elsewhere than on the letters, as where a model thinks first: a text can be asked for.
        written = [other.id for other in others if other.scoring == "generation"][:_MOST_NAMED]
        first = f"--prompt {' or '.join(written)}, or " if written else ""
        how = "switching thinking off (--reasoning-effort off, or --chat-template-args)" if in_chat else "another model"
        return f"try {first}{how}"
    reworded = [other for other in others if other.template != prompt.template and other.requires == prompt.requires]
    alike = [other for other in reworded if other.temperature == prompt.temperature]
    # Probabilities can always be read, also those of a model that does not answer questions.
    scored = [other for other in others if other.requires == "option_logprobs" != prompt.requires]
    names = " or ".join(other.id for other in [*scored[:1], *(alike or reworded)])
    parts = [f"--prompt {names}"] if names else []
    parts += [] if in_chat else ["--chat if this is a chat model"]
    return f"try {', or '.join(parts)}" if parts else "try another model"


def early_look(
    plan: Plan, asked: Sequence[AskedPart], model: Model, advice: Callable[[], str]
) -> Callable[[Mapping[bytes, Response]], bool]:
    """Return a function that checks the first answered items once there are enough of them.

    If reading all of them fails, it raises a ``RunError`` to end the run before it costs more. If none of their answers
    can be understood, it warns on standard error. It returns True once it has checked them.

    ``advice`` returns what may help if answers cannot be read.
    """
    chat = model.chat_template_sha256 is not None

    def look(responses: Mapping[bytes, Response]) -> bool:
        reads = []
        example = ""
        items = (zip(part.items, requests, keys, strict=True) for part, requests, keys in asked)
        for (_, item), requests, item_keys in chain.from_iterable(items):
            answers = [responses.get(key) for key in item_keys]
            sound = [answer for answer in answers if answer is not None and answer.status == "answered"]
            # Answers come in any order, so the first items are the first that are completely answered.
            if len(sound) < len(answers):
                continue
            pairs = zip(requests, sound, strict=True)
            exchanges = [
                exchange_of(request, answer, show_prompt=False, chat=chat, is_continued=plan.prompt.n_rounds > 1)
                for request, answer in pairs
            ]
            reads.append(plan.task.reading(exchanges, plan.normalisation, plan.prompt.id))
            example = answer_shown(item.item_id, exchanges, plan.task.facts(item).target, reads[-1].reason)
            if len(reads) == _N_LOOKED_AT:
                break
        if len(reads) < _N_LOOKED_AT:
            return False
        if all(read.status == "failed" for read in reads):
            raise RunError(
                f"none of the first {len(reads)} answered items could be read: {reads[-1].reason}; the rest "
                "was not asked, answers are kept"
            )
        if model.endpoint != "baseline" and all(read.status in ("unparsed", "refused") for read in reads):
            counted = ", ".join(f"{n} {status}" for status, n in Counter(read.status for read in reads).most_common())
            # A model that declines every question does so by other prompts too.
            refuses = all(read.status == "refused" for read in reads)
            print(
                f"warning: {plan.signature.dataset} {plan.selection.config}, prompt {plan.prompt.id}: none of the "
                f"first {len(reads)} answers could be read ({counted}): {example}; the run goes on; to save its time, "
                f"stop it with Ctrl-C{'' if refuses else f' and {advice()}'}",
                file=sys.stderr,
            )
        return True

    return look


def _refusals(folder: Path, result: Result) -> tuple[int, int]:
    """Return how many answers of a finished run refuse, and how many there are; an item with a score may have both."""
    signature, task = result.signature, load_task(result.signature.task)
    n_refused = n_answers = 0
    for records in StoredParts(folder, result):
        n_of_items = np.diff(records.first_exchanges)
        refused = records.columns["status"].coded.is_one_of("refused").astype(np.int64)
        # An only answer refuses if its item does; reading all again would take as long as the measures.
        is_text = records.exchanges["kind"].coded.is_one_of("generate").any()
        several = np.flatnonzero((n_of_items > 1) & is_text)
        for row, record in zip(several.tolist(), records.rows(several), strict=True):
            alone = (
                task.reading((exchange,), signature.normalisation, signature.prompt) for exchange in record.exchanges
            )
            refused[row] = sum(read.status == "refused" for read in alone)
        n_refused += int(refused.sum())
        n_answers += int(n_of_items.sum())
    return n_refused, n_answers


def statuses_of_groups(folder: Path, result: Result) -> dict[tuple[str, str], Counter[str]]:
    """Return how many items of each group have which status, by the name and the value of the group.

    The groups are those by which one of the metrics is sliced.
    """
    sliced_by = {name for metric in result.metrics for name in metric.group}
    counted: dict[tuple[str, str], Counter[str]] = {}
    for records in StoredParts(folder, result):
        statuses = records.columns["status"].texts
        owners, names, values = records.columns["groups"].entries
        for row, name, value in zip(owners.tolist(), names.texts, values.texts, strict=True):
            if name in sliced_by:
                counted.setdefault((str(name), str(value)), Counter())[str(statuses[row])] += 1
    return counted


def refusal_lines(finished: Iterable[tuple[Path, Result]]) -> list[str]:
    """Return a line for each benchmark of which answers refuse, over all of its finished runs."""
    totals: dict[str, list[int]] = {}
    for folder, result in finished:
        before = totals.get(result.signature.benchmark, [0, 0])
        totals[result.signature.benchmark] = [a + b for a, b in zip(before, _refusals(folder, result), strict=True)]
    return [
        f"{benchmark}: {_share(n_refused, n_answers, 'answers')} were refusals"
        for benchmark, (n_refused, n_answers) in totals.items()
        if n_refused
    ]


def order_lines(finished: Iterable[tuple[Path, Result]]) -> list[str]:
    """Return a line for each benchmark whose items were asked in several orders of the options, over all of its runs.

    It says of how many items the most likely answer is not the same in all orders.
    """
    totals: dict[str, list[int]] = {}
    for folder, result in finished:
        if result.model.endpoint == "baseline":
            continue
        before = totals.get(result.signature.benchmark, [0, 0])
        totals[result.signature.benchmark] = [a + b for a, b in zip(before, _changed(folder, result), strict=True)]
    return [
        f"{benchmark}: the answer to {_share(n_changed, n_items)} changes with the order of the options"
        for benchmark, (n_changed, n_items) in totals.items()
        if n_items
    ]


def _changed(folder: Path, result: Result) -> tuple[int, int]:
    """Return of how many items the most likely answer depends on the order, and how many were asked in several."""
    signature, task = result.signature, load_task(result.signature.task)
    n_changed = n_items = 0
    for records in StoredParts(folder, result):
        first, n_options = records.first_exchanges, records.exchanges["outcomes"].lists.lengths
        several = np.flatnonzero(records.has_reading & (np.diff(first) > 1))
        for record in records.rows(several[n_options[first[several]] > 1]):
            orders = {exchange.outcomes for exchange in record.exchanges}
            if len(orders) < len(record.exchanges):
                continue  # Samples of one order differ by chance too.
            n_items += 1
            reads = (task.reading((one,), signature.normalisation, signature.prompt) for one in record.exchanges)
            n_changed += len({likeliest(read.reading) for read in reads if read.reading is not None}) > 1
    return n_changed, n_items


def on_letters(folder: Path, result: Result) -> str:
    """Return how much of the probability a model puts on the letters that it is offered; "" if that is unknown."""
    if result.signature.scoring != "option_logprob" or result.model.endpoint == "baseline":
        return ""
    shares = FirstTokenShares()
    for records in StoredParts(folder, result):
        shares.add(records)
    return "" if shares.median is None else f"; {shares.median:.2g} of the first token's probability on the letters"


def are_many(n: int, n_items: int) -> bool:
    """Return True if this number of items is worth a line on the console."""
    return n > max(_A_FEW, _MANY * n_items)


def notes(folder: Path, result: Result, advice: str) -> list[str]:
    """Return lines about the answers of a finished run that could not be read or were cut."""
    counts = result.counts
    largest = max(counts.unparsed, counts.refused, counts.truncated)
    if result.model.endpoint == "baseline" or not are_many(largest, counts.items):
        return []
    lines = []
    if counts.scored:  # If nothing was scored, :func:`check_read` reports it.
        if are_many(counts.unparsed, counts.items) and (first := _first(folder, result, "unparsed")) is not None:
            unread = f"{_share(counts.unparsed, counts.items)} have an answer that could not be read"
            lines.append(f"{unread}: for example, {_shown_of(first)}{f'; {advice}' if advice else ''}")
        if are_many(counts.refused, counts.items) and (first := _first(folder, result, "refused")) is not None:
            n_refused, n_answers = _refusals(folder, result)
            refused = f"{_share(counts.refused, counts.items)} were refusals ({n_refused:,} of {n_answers:,} answers)"
            lines.append(f"{refused}: for example, {_shown_of(first)}")
    if are_many(counts.truncated, counts.items):
        lines.append(_cut(result, folder))
    return lines


def _first(folder: Path, result: Result, *statuses: str) -> Record | None:
    """Return the first record with one of some statuses; None if there is none."""
    for records in StoredParts(folder, result):
        rows = records.columns["status"].coded.is_one_of(*statuses).nonzero()[0].tolist()
        if rows:
            return records[rows[0]]
    return None


def is_unreadable(result: Result) -> bool:
    """Return True if no answer of a model could be read; never for baselines, which may answer anything."""
    return result.model.endpoint != "baseline" and not result.counts.scored


def check_read(finished: Sequence[tuple[Path, Result, str]]) -> None:
    """Check that at least one answer of each finished run could be read, except for baselines.

    Raises:
        RunError: no answer of a run could be read. Its result and answers are kept.
    """
    empty = [run for run in finished if is_unreadable(run[1])]
    if not empty:
        return
    (folder, result, advice), *others = empty
    counts = result.counts
    record = _first(folder, result, "unparsed", "refused") or _first(folder, result, "failed")
    example = "" if record is None else f": {_shown_of(record)}"
    also = [f"{other.signature.config} in {path}" for path, other, _ in others]
    numbers = {"unparsed": counts.unparsed, "refused": counts.refused, "failed": counts.failed}
    by_status = ", ".join(f"{n} {name}" for name, n in sorted(numbers.items(), key=lambda entry: -entry[1]) if n)
    raise RunError(
        f"0 of {counts.items} answers on {result.signature.config} could be read ({by_status}){example}; "
        f"{advice or 'try another prompt'}; result and answers are kept in {folder}"
        + (f"; nor could those on {', '.join(also)}" if also else "")
    )


def _share(n: int, n_all: int, what: str = "items") -> str:
    return f"{n:,} of {n_all:,} {what} ({100 * n / n_all:.0f} %)"


def _shown_of(record: Record) -> str:
    return answer_shown(record.item_id, record.exchanges, record.target, record.reason)


def _cut(result: Result, folder: Path) -> str:
    """Return a line on answers that were cut, by a full context or by the limit of the prompt."""
    prompt = load_task(result.signature.task).prompts.get(result.signature.prompt)
    limit = None if prompt is None else prompt.max_tokens
    # Cut before they had as many tokens as the prompt allows.
    early = sum(
        any(
            exchange.finish_reason == "length" and (n := exchange.n_completion_tokens) is not None and n < (limit or 0)
            for exchange in record.exchanges
        )
        for records in StoredParts(folder, result)
        for record in records.rows(np.flatnonzero(records.columns["truncated"].flags))
    )
    line = f"{_share(result.counts.truncated, result.counts.items)} have an answer that was cut"
    if limit is not None:
        line += f" at the prompt's limit of {limit} tokens" if not early else f" (the prompt's limit: {limit} tokens)"
    if early:
        return (
            f"{line}, {early} of them before that limit, as in a full context; take a shorter prompt or another model"
        )
    return f"{line}; base models often write on like that, but if answers end too early, take another prompt"
