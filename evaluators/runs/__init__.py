"""The three acts of a run.

* *plan* selects the items and the prompt, asks the backend whether it can, and estimates what asking costs.
* *ask* sends the requests whose answers are not stored yet, imports answers, and trains adapters.
* *measure* reads the answers into records and computes metrics from them; it needs no model.
"""
