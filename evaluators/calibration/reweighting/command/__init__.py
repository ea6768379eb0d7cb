"""The commands ``python -m evaluators reweight evaluate|fit|apply``."""
