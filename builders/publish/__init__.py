"""Publishes dataset folders on the Hugging Face Hub; no builder, but the command that follows every builder.

*publishable* reads the folder and refuses what must not be published, *sending* decides what is sent in which order,
and *hub_repository* is the repository on the Hub.
"""
