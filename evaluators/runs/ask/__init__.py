"""Gets answers: *pipeline* from a backend, *importing* from published files and from logs of another harness.

*pipeline* looks for each answer in turn::

    store of the run ──> cache (--cache) ──> stores of earlier runs ──> backend
          ^                    │                      │                    │
          └────────────────────┴──────────────────────┴────────────────────┘  what is found or answered is kept

*context_limit* finds prompts that are too long before any is sent; *finetuning* trains the adapters that a run then
asks with.
"""
