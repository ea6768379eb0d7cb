"""What will be asked, before anything is.

*selection* chooses the items; *plan* adds their task, prompt, requests and signature, and refuses a backend that cannot
ask them. *earlier_answers* finds existing answers, *estimate* computes what the rest costs, *gpu_hours* how long
GPUs take where nothing was measured, and *run_options* holds the run's other settings. *exported_questions* turns a
plan into questions for another harness.
"""
