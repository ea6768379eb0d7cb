"""What will be asked, before anything is.

*selection* chooses items, *plan* their task, prompt, requests and signature, and refuses a backend that cannot ask
them. *earlier_answers* finds what is answered already, *estimate* says what the rest costs, *run_options* are the rules
of the run. *exported_questions* writes a plan down for another harness.
"""
