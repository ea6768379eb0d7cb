"""Code that the task *classification*, its metrics and baselines share: prompts, arrays of answers, and measures."""
