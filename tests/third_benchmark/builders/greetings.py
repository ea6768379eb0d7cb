"""Builds the dataset: ``biasboard build greetings``."""

from __future__ import annotations

from pathlib import Path

import typer

from biasboard.ground.command_line import EXIT_STATUS, one_line_errors
from builders.build_command import Out, Overwrite, closing_lines, target_folder
from builders.dataset.card import Card, CardTable
from builders.dataset.output import Draft, DraftSplit, write_dataset
from schemas.documents.dataset import Source
from schemas.items.greeting import GreetingItem

ROOMS = ("kitchen", "garage", "office", "library", "bakery", "hall", "studio", "cellar")
ITEMS = [
    GreetingItem(
        item_id=f"{room}-{dress}",
        room=room,
        visitor=f"somebody in {'a' if dress == 'suit' else 'an'} {dress}",
        dress="suit" if dress == "suit" else "overall",
        polite="Good day",
        flags=(),
    )
    for room in ROOMS
    for dress in ("suit", "overall")
]
NOTE = "Made by a test."
CARD = Card(
    data_statement=NOTE,
    how_built=NOTE,
    licence_terms=NOTE,
    intended_use=NOTE,
    out_of_scope_use=NOTE,
    known_limits=NOTE,
    balance=CardTable(header=("dress", "items"), rows=(("suit", "8"), ("overall", "8"))),
    citation=NOTE,
    task_categories=("text-generation",),
    tags=("bias",),
)
DRAFT = Draft(
    name="greetings",
    benchmark="greetings",
    version="1.0.0",
    title="Greetings",
    builder="greetings",
    builder_version="1.0",
    parameters={},
    seed=None,
    sources=(
        Source(name="test", address="test", revision=None, sha256=None, licence="Apache-2.0", redistributable=True),
    ),
    generator_model=None,
    licence="apache-2.0",
    publish_refusal=None,
    human_validated=False,
    splits=(DraftSplit(config="door", split="test", item_shape="greeting", items=ITEMS),),
    rejects=(),
    reject_rules=(),
    flag_rules=(),
    card=CARD,
)

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


@app.command(epilog=EXIT_STATUS)
@one_line_errors()
def build(out: Out = None, overwrite: Overwrite = False) -> Path:
    """Build sixteen greetings, eight for each dress."""
    folder = target_folder(out, Path("out/datasets/greetings"), overwrite=overwrite)
    manifest = write_dataset(DRAFT, folder, overwrite=overwrite)
    print(*closing_lines(manifest, folder, n_items=len(ITEMS)), sep="\n")
    return folder


if __name__ == "__main__":
    app()
