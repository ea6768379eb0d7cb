"""The least that asks an endpoint through the library ``openai``; see ``bench_endpoint.py``.

``python tests/bench/bare_client.py URL PROMPTS CONCURRENCY`` asks for a text to each prompt of a JSON file.
"""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path

from openai import AsyncOpenAI


async def main(url: str, prompts: list[str], concurrency: int) -> None:
    todo = iter(prompts)
    texts: list[str | None] = []

    async def work() -> None:
        for prompt in todo:
            answer = await client.chat.completions.create(
                model="made/model",
                messages=[{"role": "user", "content": prompt}],
                max_tokens=16,
                temperature=0.0,
                top_p=1.0,
                seed=0,
            )
            texts.append(answer.choices[0].message.content)

    async with AsyncOpenAI(base_url=url, api_key="none") as client:
        await asyncio.gather(*(work() for _ in range(concurrency)))
    assert len(texts) == len(prompts)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], json.loads(Path(sys.argv[2]).read_text()), int(sys.argv[3])))
