"""Decides whether texts of items and answers may be shown or passed on."""

from __future__ import annotations

from leaderboard.verify.entries import Entry
from schemas.documents.dataset import Manifest


def why_withheld(entry: Entry, manifest: Manifest | None) -> str | None:
    """Return why the texts of a result may be neither shown nor passed on; None if they may.

    Args:
        entry: The result.
        manifest: Manifest of its dataset; None if the dataset is not on this machine.
    """
    if entry.result.withheld is not None:
        return "the result was submitted with hashes in place of its texts"
    if entry.match.is_held_out:
        return "the dataset is held out, and its items stay secret"
    if manifest is not None and not manifest.redistributable:
        # What follows a semicolon is advice for the owner of the dataset folder.
        refusal = (manifest.publish_refusal or "").partition(";")[0]
        return refusal or f"the licence of the dataset, {manifest.licence}, forbids showing its texts"
    if entry.examples.hides_prompts:
        return "the records hold no prompts, because the licence of the dataset forbids showing its texts"
    return None
