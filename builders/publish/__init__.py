"""Publishes dataset folders on the Hugging Face Hub; not a builder, but the command to run after any builder.

*publishable* reads the folder and refuses what must not be published, *sending* decides what to send in which order,
and *hub_repository* is the repository on the Hub.
"""
