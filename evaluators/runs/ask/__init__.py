"""Gets answers: *pipeline* from a backend, *importing* from published files and from logs of another harness.

*context_limit* finds prompts that are too long before any is sent; *finetuning* trains the adapters that a run then
asks with.
"""
