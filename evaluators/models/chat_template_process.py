"""Renders a chat template in a process of its own, with limits on time and memory.

A template comes with a model and is a program: it can loop forever or fill the memory. The request is a JSON object
with the template, its variables, the prompts and the limits; the answer is a JSON object with the texts or a problem.
"""

from __future__ import annotations

import json
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

MEMORY = 2 << 30
"""Maximum memory in bytes, in addition to that of the libraries."""


def _limit(cpu_seconds: int) -> None:
    # Windows has no such limits; there, only the caller's time-out applies.
    with suppress(ImportError, OSError, ValueError):
        import resource

        used = resource.getrusage(resource.RUSAGE_SELF)
        seconds = int(used.ru_utime + used.ru_stime) + 1 + cpu_seconds
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 1))
        size = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (size + MEMORY, size + MEMORY))


def main() -> None:
    """Answer the request on standard input."""
    request = json.load(sys.stdin)
    chats = [[{"role": "user", "content": prompt}] for prompt in request["prompts"]]
    try:
        from transformers.utils.chat_template_utils import render_jinja_template

        _limit(request["cpu_seconds"])
        rendered: Any = render_jinja_template(
            conversations=chats, chat_template=request["template"], add_generation_prompt=True, **request["variables"]
        )
        texts = [str(text) for text in rendered[0]]
        longest = max(map(len, texts))
        answer: dict[str, Any] = {"texts": texts}
        if longest > request["longest"]:
            answer = {"problem": f"makes {longest:,} characters of a prompt"}
    except MemoryError:
        answer = {"problem": f"takes more than {MEMORY >> 30} GiB of memory"}
    # A template can raise any exception.
    except Exception as error:
        answer = {"problem": f"fails: {type(error).__name__}: {error}"}
    json.dump(answer, sys.stdout)


if __name__ == "__main__":
    main()
