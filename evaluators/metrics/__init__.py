"""The metrics, as pure functions of records: each ``MetricDefinition`` in these files is a metric."""

from biasboard.ground.plugins import search_path

__path__ = search_path(__name__, __path__)
