"""Digests of the published SynthBias, by which its texts are known wherever they stand; its sentences may not lie here.

``published_digests.bin`` holds those of all 31,728 sentences. It was made with
:func:`builders.dataset.protected.packed` from the published file, and a test compares the two where that is at hand.
"""

from __future__ import annotations

from pathlib import Path

from builders.dataset.protected import ProtectedSource

SHA256 = "6bf346256a12eeb959dfbe610948694e8da26c74306bb202c2f6cd177af84588"
"""SHA-256 of the published CSV file."""

PROTECTED = ProtectedSource(
    name="SynthBias",
    refusal=(
        "the data of SynthBias is licensed under CC BY-NC-ND 4.0, which forbids sharing adapted copies; "
        "keep this folder to yourself and publish scores, line numbers and hashes"
    ),
    file_sha256s=(SHA256,),
    digests=Path(__file__).with_name("published_digests.bin"),
)
