"""Checks that a backend can ask with a prompt, before anything is asked."""

from __future__ import annotations

from collections.abc import Sequence

from biasboard.ground.errors import ConfigError
from evaluators.backend import Backend, backends_with
from evaluators.task import Prompt, Task


def can_ask(prompt: Prompt, backend: Backend) -> bool:
    """Return True if a backend can ask with a prompt."""
    in_chat = backend.model.chat_template_sha256 is not None
    if not in_chat and prompt.requires in backend.capabilities:
        in_chat = backend.sends_messages()
    return prompt.requires in backend.capabilities and (prompt.chat or not in_chat)


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


def check_unprobed(task: Task, prompt: Prompt, backend: Backend) -> None:
    """Check what is known about a prompt before a remote backend is asked anything.

    Raises:
        ConfigError: the prompt cannot be asked, or it is a text to continue and the backend only sends messages.
    """
    check_askable(prompt)
    if backend.surely_sends_messages() and not prompt.chat:
        others = [other.id for other in task.prompts.values() if other.chat and other.requires != "import"]
        raise _no_message(prompt, others, "; or --api completions where the endpoint has it")


def _no_message(prompt: Prompt, others: Sequence[str], ways: str) -> ConfigError:
    return ConfigError(
        f"prompt '{prompt.id}' is a text to continue, and this endpoint is sent messages of a chat; take --prompt "
        f"{' or '.join(others)}{ways}"
    )


def check_capability(task: Task, prompt: Prompt, backend: Backend) -> None:
    """Check that a backend can ask with a prompt.

    Raises:
        ConfigError: the backend lacks a capability, or the prompt makes no sense in a chat.
    """
    model = backend.model
    check_askable(prompt)
    if prompt.requires not in backend.capabilities:
        others = [other.id for other in task.prompts.values() if other.requires in backend.capabilities]
        why = "".join(f"; {name}: {reason}" for name, reason in backend.runtime.obstacles.items())
        able = backends_with(prompt.requires)
        others_can = f"; backends that can: {', '.join(able)}" if able else ""
        raise ConfigError(
            f"backend '{model.backend}' cannot do {prompt.requires}, which prompt '{prompt.id}' needs; "
            f"it can do: {', '.join(sorted(backend.capabilities)) or 'nothing'}; "
            f"prompts for that: {', '.join(others) or 'none'}{_other_ways(backend)}{why}{others_can}"
        )
    if backend.sends_messages() and not prompt.chat:
        others = [other.id for other in task.prompts.values() if other.chat and other.requires in backend.capabilities]
        raise _no_message(prompt, others, _other_ways(backend))
    if model.chat_template_sha256 is not None and not prompt.chat:
        others = [other.id for other in task.prompts.values() if other.chat]
        raise ConfigError(
            f"prompt '{prompt.id}' is a text to continue, not a message; leave out --chat, or take --prompt "
            f"{' or '.join(others)}"
        )


def _other_ways(backend: Backend) -> str:
    ways = backend.other_ways() if backend.sends_messages() else ()
    return f"; or take {' or '.join(ways)}" if ways else ""
