"""Runs the last layer only at the positions that are needed, because no later layer looks at the others."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any

from biasboard.ground.errors import import_extra

if TYPE_CHECKING:
    from torch import Tensor
    from torch.nn import Module
    from transformers import PreTrainedModel

_FEED_FORWARD = {"mlp", "feed_forward", "ffn"}
_QUERY_AND_OUTPUT = {"q_proj", "o_proj", "out_proj"}
"""Names of the linear layers for queries and for the output of the attention. Keys and values are computed at all
positions, because the needed positions look at all others."""


@contextmanager
def last_layer_at(network: PreTrainedModel, rows: Tensor, columns: Tensor, shape: tuple[int, int]) -> Iterator[None]:
    """Run the token-wise parts of the last layer at some positions only, and give zeros at the others.

    While in this context, the model's output at the other positions is meaningless. If the last layer has an unknown
    structure, it runs as a whole.

    Args:
        network: The model.
        rows: Row of each needed position, shape (n,).
        columns: Column of each needed position, shape (n,).
        shape: Numbers of rows and columns of the forward pass.
    """
    with ExitStack() as hooks:
        for module in _parts(network):
            hook = _Selection(rows, columns, shape)
            hooks.callback(module.register_forward_pre_hook(hook.before).remove)
            hooks.callback(module.register_forward_hook(hook.after).remove)
        yield


class _Selection:
    """A pair of hooks that give a module only the needed positions and put its output back in place."""

    def __init__(self, rows: Tensor, columns: Tensor, shape: tuple[int, int]) -> None:
        self._rows, self._columns, self._shape = rows, columns, shape
        self._selected = False

    def before(self, _module: Module, given: tuple[Any, ...]) -> tuple[Any, ...]:
        """Keep only the needed positions if the input has the shape of the forward pass."""
        self._selected = len(given) == 1 and tuple(given[0].shape[:2]) == self._shape
        return (given[0][self._rows, self._columns][None],) if self._selected else given

    def after(self, _module: Module, _given: tuple[Any, ...], output: Tensor) -> Tensor:
        """Put the output back in its place among zeros."""
        if not self._selected:
            return output
        whole = output.new_zeros((*self._shape, output.shape[-1]))
        whole[self._rows, self._columns] = output[0]
        return whole


def _parts(network: PreTrainedModel) -> list[Module]:
    """Return the parts of the last layer that treat each token by itself.

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
