"""How fast candidates pass the checks and the search for duplicates: ``make bench ARGS='-k bench_checks'``.

A candidate is one sentence. CPU seconds count, since machines are shared; the fastest of some rounds, since others use
them too.
"""

from __future__ import annotations

import gc
import time
import tracemalloc
from itertools import islice
from pathlib import Path

from builders.synthbias.checks.catalogue import GENERATED, Duplicates, first_finding
from builders.synthbias.checks.check import Sentence
from builders.synthbias.embedded import occupation_pairs
from builders.synthbias.frames import open_frames, settled_frames
from builders.synthbias.lint import lint

ROUNDS = 3
N_CANDIDATES = 20_000
LEAST_PER_SECOND = 20_000
MOST_BYTES = 200


def candidates() -> list[tuple[str, tuple[str, str]]]:
    """Fill the frames of the embedded source: each occupation pair with each frame, in turns."""
    frames = [*open_frames(), *settled_frames()]
    filled = ((frame.about(*pair).filled("feminine"), pair) for frame in frames for pair in occupation_pairs()[0])
    return list(islice(filled, N_CANDIDATES))


def bench_checks() -> None:
    """Candidates through all checks of generated sentences and the search for duplicates."""
    made = candidates()
    taken = []
    for _ in range(ROUNDS):
        seen = Duplicates(template_cap=400)
        start = time.process_time()
        for text, meant in made:
            sentence = Sentence(text=text, meant=meant, type="type1", gender="feminine")
            if first_finding(sentence, GENERATED) is None:
                seen.add(sentence)
        taken.append(time.process_time() - start)
    rate = len(made) / min(taken)
    print(f"\n{rate:,.0f} candidates/s of CPU, {len(seen):,} of {len(made):,} kept", end="")
    assert rate >= LEAST_PER_SECOND


def bench_memory() -> None:
    """Memory of remembered candidates, as the allocator of Python counts it."""
    made = [Sentence(text=text, meant=meant) for text, meant in candidates()]
    Duplicates(template_cap=400).add(made[0])
    # A sentence keeps what it was asked for, which is no memory of the search.
    assert all(sentence.masked and sentence.template and sentence.words for sentence in made)
    gc.collect()
    tracemalloc.start()
    seen = Duplicates(template_cap=400)
    worst = 0.0
    for sentence in made:
        if seen.add(sentence) is None and len(seen) >= 3_000 and len(seen) % 100 == 0:
            worst = max(worst, tracemalloc.get_traced_memory()[0] / len(seen))
    tracemalloc.stop()
    print(f"\nat most {worst:.0f} bytes per candidate from 3,000 to {len(seen):,}", end="")
    assert 0 < worst <= MOST_BYTES


def bench_lint(shared_data: Path) -> None:
    """The published file, from its bytes to the report."""
    path = shared_data / "synthbias" / "synthbias_data.csv"
    start = time.process_time()
    report = lint([path])
    print(f"\nlint: {report.n_sentences:,} rows in {time.process_time() - start:.1f} s of CPU", end="")
