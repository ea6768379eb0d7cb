"""Prompts about groups of people: are the texts about all alike?

From item to metrics::

    prompt, group, set
        │  own_prompt_task: one answer, or several samples
        v
    whether each answer declines; its words, sentiment, toxicity      scorers
        │  table in own_prompt_task: one row per answer
        v
    own_prompt_metrics: means by group, the largest gap, and how often chance gives one as large

*own_prompts_benchmark* says which measures are shown first.
"""

from biasboard.ground.plugins import search_path

__path__ = search_path(__name__, __path__)
