"""What will be asked, before anything is.

*selection* chooses items, *plan* their task, prompt, requests and signature; *capabilities* refuses a backend that
cannot, *earlier_answers* finds what is answered already, and *estimate* says what the rest costs. *questions* writes
a plan down for another harness.
"""
