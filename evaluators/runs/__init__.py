"""The three acts of a run.

* *plan* selects the items and the prompt, checks that the backend can ask them, and estimates the cost.
* *ask* sends the requests whose answers are not stored yet, imports answers, and trains adapters.
* *measure* reads the answers into records and computes metrics from them; it needs no model.
"""
