"""What will be asked, before anything is.

*plan* chooses the items, adds their task, prompt, requests and signature, and refuses a backend that cannot ask them.
*earlier_answers* finds existing answers, and *estimate* computes what the rest costs. *exported_questions* turns a plan
into questions for another harness.
"""
