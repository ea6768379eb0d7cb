"""Publishes dataset folders on the Hugging Face Hub; not a builder, but the command to run after any builder.

*publishable* reads the folder and refuses what must not be published, and *sending* decides what to send in which
order. The repository on the Hub is :mod:`biasboard.ground.hub_repository`.
"""
