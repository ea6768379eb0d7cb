"""Scores options in the simplest way, one row per option: the reference for every faster way.

The output layer, and parts of the last layer, run only at the positions that are needed. The output layer multiplies by
the whole vocabulary, which at all positions can cost as much as the rest of the model, and the results of the last
layer at other positions are used by no later layer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from biasboard.ground.errors import import_extra
from evaluators.models.tokenizer import TokenRows

if TYPE_CHECKING:
    import torch
    from torch import Tensor
    from torch.nn import Module
    from transformers import PreTrainedModel

# 128 MiB of float32.
_CHUNK_LOGITS = 2**25
"""Maximum number of logits converted to float32 at a time."""


class WantedToken(NamedTuple):
    """A token whose log-probability is wanted."""

    row: int
    column: int
    """Column of the position that predicts the token."""
    token: int


def wanted_logprobs(
    network: PreTrainedModel, arguments: dict[str, Any], wanted: Sequence[WantedToken], *, whole_last_layer: bool = True
) -> list[float]:
    """Return the log-probabilities of tokens in nats, from one forward pass.

    The output layer runs only where a wanted token is predicted. Any later treatment of the logits, such as scaling or
    capping, still applies.

    Args:
        network: The model.
        arguments: Keyword arguments of the forward pass.
        wanted: Tokens, each with the position that predicts it.
        whole_last_layer: True if the last layer also runs at positions that are not needed.

    Returns:
        Log-probability of each wanted token, computed from float32 logits whatever the precision of the model.
    """
    torch = import_extra("torch", "hf")
    positions = list(dict.fromkeys((item.row, item.column) for item in wanted))
    index_of = {position: index for index, position in enumerate(positions)}
    device = network.device
    rows = torch.tensor([row for row, _ in positions], device=device)
    columns = torch.tensor([column for _, column in positions], device=device)
    n_rows, n_columns = arguments["decoder_input_ids" if "decoder_input_ids" in arguments else "input_ids"].shape
    shape = (n_rows, n_columns)
    with ExitStack() as contexts:
        contexts.enter_context(torch.inference_mode())
        logits_at = contexts.enter_context(output_layer_at(network, rows, columns, shape))
        if not whole_last_layer:
            contexts.enter_context(last_layer_at(network, rows, columns, shape))
        logits = logits_at(network(**arguments).logits)
        index = torch.tensor([index_of[item.row, item.column] for item in wanted], device=device)
        tokens = torch.tensor([item.token for item in wanted], device=device)
        # Converted to float32 first: bfloat16 would round a log-probability to a multiple of 1/4 nat.
        step = max(1, _CHUNK_LOGITS // logits.shape[-1])
        totals = torch.cat([torch.logsumexp(part.float(), dim=-1) for part in torch.split(logits, step)])
        logprobs = logits[index, tokens].float() - totals[index]
        values: list[float] = logprobs.double().cpu().tolist()
    return values


@contextmanager
def output_layer_at(
    network: PreTrainedModel, rows: Tensor, columns: Tensor, shape: tuple[int, ...]
) -> Iterator[Callable[[Tensor], Tensor]]:
    """Within this context, run the output layer only at some positions, if the model gives access to it.

    Args:
        network: The model.
        rows: Row of each position, shape (n,).
        columns: Column of each position, shape (n,).
        shape: Numbers of rows and columns of the forward pass.

    Yields:
        Function that takes the logits of the pass and returns those at the positions, shape (n, vocabulary).
    """
    head = _head(network)
    selected = False

    def select(_module: Any, inputs: tuple[Any, ...]) -> tuple[Any, ...]:
        nonlocal selected
        hidden, *rest = inputs
        if selected or tuple(hidden.shape[:2]) != shape:
            return inputs
        selected = True
        return (hidden[rows, columns][None], *rest)

    with nullcontext() if head is None else head.register_forward_pre_hook(select):
        yield lambda logits: logits[0] if selected else logits[rows, columns]


@contextmanager
def last_position_only(network: PreTrainedModel) -> Iterator[None]:
    """Within this context, run the output layer only at the last position."""

    def select(_module: Any, inputs: tuple[Any, ...]) -> tuple[Any, ...]:
        return (inputs[0][:, -1:], *inputs[1:])

    head = _head(network)
    with nullcontext() if head is None else head.register_forward_pre_hook(select):
        yield


def _head(network: PreTrainedModel) -> Any:
    return network.get_output_embeddings()  # type: ignore[no-untyped-call]


_FEED_FORWARD = {"mlp", "feed_forward", "ffn"}
_QUERY_AND_OUTPUT = {"q_proj", "o_proj", "out_proj"}
"""Names of the linear layers for queries and for the output of attention. Keys and values are computed at all
positions, because the needed positions attend to all of them."""


@contextmanager
def last_layer_at(network: PreTrainedModel, rows: Tensor, columns: Tensor, shape: tuple[int, int]) -> Iterator[None]:
    """Within this context, run the token-wise parts of the last layer only at some positions, with zeros at the others.

    The model's output at the other positions is then meaningless. A last layer of unknown structure runs as a whole.

    Args:
        network: The model.
        rows: Row of each needed position, shape (n,).
        columns: Column of each needed position, shape (n,).
        shape: Numbers of rows and columns of the forward pass.
    """
    # This makes packed scoring about a tenth faster.
    selected: dict[Module, bool] = {}

    def keep_needed(module: Module, inputs: tuple[Any, ...]) -> tuple[Any, ...]:
        selected[module] = len(inputs) == 1 and tuple(inputs[0].shape[:2]) == shape
        return (inputs[0][rows, columns][None],) if selected[module] else inputs

    def put_back(module: Module, _given: tuple[Any, ...], output: Tensor) -> Tensor:
        if not selected[module]:
            return output
        whole = output.new_zeros((*shape, output.shape[-1]))
        whole[rows, columns] = output[0]
        return whole

    with ExitStack() as hooks:
        for part in _tokenwise_parts(network):
            hooks.enter_context(part.register_forward_pre_hook(keep_needed))
            hooks.enter_context(part.register_forward_hook(put_back))
        yield


def _tokenwise_parts(network: PreTrainedModel) -> list[Module]:
    """Return the parts of the last layer that process each token by itself.

    These are the linear layers of queries and of the attention's output, and feed-forward parts that consist only of
    linear layers. The list is empty if the layers of the model cannot be identified.
    """
    torch = import_extra("torch", "hf")
    n_layers = getattr(network.config.get_text_config(), "num_hidden_layers", None)
    stacks = [
        module
        for module in network.modules()
        if isinstance(module, torch.nn.ModuleList) and len(module) == n_layers and n_layers
    ]
    if len(stacks) != 1:
        return []
    last = stacks[0][-1]
    parts = [part for name, part in last.named_children() if name in _FEED_FORWARD and _is_dense(part)]
    for name, part in last.named_modules():
        inside = any(name.startswith(f"{outer}.") for outer in _FEED_FORWARD)
        if name.rpartition(".")[2] in _QUERY_AND_OUTPUT and type(part) is torch.nn.Linear and not inside:
            parts.append(part)
    return parts


def _is_dense(part: Module) -> bool:
    """Return True if all weights belong to linear layers, so that no token affects the output of another."""
    torch = import_extra("torch", "hf")
    conv1d = import_extra("transformers.pytorch_utils", "hf").Conv1D
    leaves = [module for module in part.modules() if next(module.children(), None) is None]
    return all(
        type(leaf) in (torch.nn.Linear, conv1d) or next(leaf.parameters(), next(leaf.buffers(), None)) is None
        for leaf in leaves
    ) and all(not list(module.parameters(recurse=False)) for module in part.modules() if module not in leaves)


class OptionScore(NamedTuple):
    """Log-probability of an option, and of the end token after it, in nats."""

    logprob: float
    end_logprob: float | None


def padded(rows: Sequence[Sequence[int]], device: torch.device) -> Tensor:
    """Return rows of token ids, shape (n, longest), with zeros on the right, which a causal model ignores."""
    width = max(map(len, rows))
    filled: Tensor = import_extra("torch", "hf").tensor([[*row, *[0] * (width - len(row))] for row in rows])
    return filled.to(device)


def batches_of(sizes: Mapping[int, tuple[int, int]], batch_tokens: int) -> list[list[int]]:
    """Return batches of requests of similar length, longest first, each within the token budget after padding.

    Args:
        sizes: Number of tokens in the longest row of each request, and number of its rows, by the request's index.
        batch_tokens: Maximum number of tokens in a batch; a single request may exceed it.
    """
    batches: list[list[int]] = []
    width = n_rows = 0
    for index in sorted(sizes, key=lambda index: (-sizes[index][0], index)):
        longest, n_more = sizes[index]
        if not batches or (n_rows + n_more) * width > batch_tokens:
            batches.append([])
            width, n_rows = longest, 0
        batches[-1].append(index)
        n_rows += n_more
    return batches


class Batch(NamedTuple):
    """Requests that are scored in one forward pass."""

    rows: tuple[tuple[int, ...], ...]
    """Requests in each row, as indices into the sequence that was planned."""
    n_prefix: int = 0
    """Number of leading tokens that all requests share; they are computed once for several batches."""


@dataclass(frozen=True)
class PlainScorer:
    """A scorer with one row per option, padded on the right."""

    network: PreTrainedModel
    end_id: int | None
    batch_tokens: int

    def plan(self, encoded: Mapping[int, TokenRows]) -> list[Batch]:
        """Plan batches of requests of similar length, longest first, each within the token budget after padding."""
        sizes = {index: (max(map(len, rows.ids)), len(rows.ids)) for index, rows in encoded.items()}
        return [Batch(tuple((index,) for index in batch)) for batch in batches_of(sizes, self.batch_tokens)]

    def score(self, trees: Sequence[Sequence[TokenRows]], n_prefix: int = 0) -> list[list[OptionScore]]:
        """Score the options of requests in one forward pass; groups and prefixes, which packed rows have, are ignored.

        Returns:
            Score of each option, per request in the order of ``trees``.
        """
        requests = [rows for tree in trees for rows in tree]
        flat = [(ids, rows.n_context) for rows in requests for ids in rows.ids]
        device = self.network.device
        end = [] if self.end_id is None else [self.end_id]
        # The token at position i is predicted at i - 1; the last position predicts the end token.
        wanted = [
            WantedToken(index, position, token)
            for index, (row, n) in enumerate(flat)
            for position, token in enumerate([*row[n:], *end], start=n - 1)
        ]
        arguments = {
            "input_ids": padded([row for row, _ in flat], device),
            # OPT and Bloom derive positions from it.
            "attention_mask": padded([[1] * len(row) for row, _ in flat], device),
            "use_cache": False,
        }
        values = iter(wanted_logprobs(self.network, arguments, wanted))
        return [
            [
                OptionScore(sum(next(values) for _ in row[rows.n_context :]), next(values) if end else None)
                for row in rows.ids
            ]
            for rows in requests
        ]
