"""Gets answers: *pipeline* from a backend, *importing* from published files, logs of other harnesses, *answer_tables*.

*pipeline* looks for each answer in turn::

    store of the run ──> cache (--cache) ──> stores of earlier runs ──> backend
          ^                    │                      │                    │
          └────────────────────┴──────────────────────┴────────────────────┘  every answer is copied here

*study* is the road that all commands and functions take, from the items and prompts that a user chooses to finished
runs. *context_limit* finds prompts that are too long before any is sent; *finetuning* trains adapters for later runs.
"""
