"""Asks models about the items of a dataset and computes metrics from the stored answers.

The way of an item::

    dataset folder       runs/plan: Task.requests               runs/ask: Backend.ask, batch by batch
    ──────────────> item ────────────────────────> requests ──> stores/store.py ──────────────────────> model
                     │                                             ^  answered ones are not asked again   │
          Task.facts │                                             └─────────────── responses <───────────┘
                     v            Task.read (runs/measure/recording.py) │ stored while the next is computed
    records.parquet: facts, exchanges, reading  <───────────────────────┘
                     │
                     │ Task.table (tasks/)     MetricDefinition (metric.py)             aggregate
                     └────────────> arrays ─────────────────────────────> sums per cluster ────────> values
                                             runs/measure/measuring.py         └─ clusters left out ─> intervals
    result.json (runs/measure/measuring.py): model, signature, counts, metrics, usage, hashes of the other files

The lower half needs no model: ``rescore`` and every verification start from ``records.parquet``.

The files at the root are interfaces: *task*, *metric*, *benchmark* and *baseline* (for
``tasks/``), *backend* with *backend_options* and *adapter_set* (``backends/``), *calibrator* (``calibration/``),
*scorer* with *text_scores* (``scorers/``), *harness* (``harnesses/``). *thinking* tells what a model thinks from what
it answers. ``runs/`` takes the three acts in turn: plan, ask, measure; ``commands/`` is the command line.
"""

from biasboard.ground.plugins import search_path

__path__ = search_path(__name__, __path__)
