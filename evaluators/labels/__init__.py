"""Code that tasks with labels, their metrics and baselines share: prompts, arrays of answers, and measures."""
