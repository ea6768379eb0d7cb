"""Pure functions of records. A metric is a ``MetricDefinition`` in one of these files; found by looking, not by registering."""
