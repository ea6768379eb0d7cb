"""What tasks and metrics on eleven pronoun families share: prompts, readings, records as arrays."""
