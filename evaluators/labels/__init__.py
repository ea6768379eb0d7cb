"""Code that the task *label*, its metrics and its baselines share: prompts, arrays of answers, and measures."""
