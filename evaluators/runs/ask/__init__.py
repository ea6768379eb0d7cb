"""Gets answers: *pipeline* from a backend, *importing* from files of elsewhere, *logged_answers* from another harness.

*context* finds prompts that are too long before any is sent; *finetuning* trains the adapters that a run then asks
with; *environment* notes where it happened.
"""
