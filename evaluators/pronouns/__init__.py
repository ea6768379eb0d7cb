"""Code that tasks and metrics with eleven pronoun families share: prompts, readings and tables of records."""
