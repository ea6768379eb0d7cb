"""The commands ``python -m builders.synthbias annotate ...``, one file each."""
