"""Other evaluation harnesses, which ask our questions and whose logs are imported, one file or package each.

::

    plan ──exported_task──> ExportedTask ──write_tasks──> folder ──> the harness asks a model ──> log
     ^                                                                                             │
     └──plan_again── Exported (the facts of the export, which the log repeats) <──read_log─────────┤
    records <──match_log── LoggedAnswer: the logged request is compared with that of the plan <────┘
"""

from biasboard.ground.plugins import search_path

__path__ = search_path(__name__, __path__)
