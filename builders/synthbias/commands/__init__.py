"""One file per command of ``python -m builders.synthbias``."""
