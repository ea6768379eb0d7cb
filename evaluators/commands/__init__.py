"""The commands of ``python -m evaluators``, one file each."""
