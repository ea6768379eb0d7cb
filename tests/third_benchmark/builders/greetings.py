"""Build sixteen greetings, eight for each dress."""

from builders.build_command import build_app
from builders.dataset.card import Card
from builders.dataset.output import Draft, DraftSplit
from schemas.items.greeting import GreetingItem

ROOMS = ("kitchen", "garage", "office", "library", "bakery", "hall", "studio", "cellar")
ITEMS = [
    GreetingItem(item_id=f"{room}-{dress}", room=room, dress=dress, flags=())
    for room in ROOMS
    for dress in ("suit", "jacket")
]
NOTE = "Made by a test."
CARD = Card(
    data_statement=NOTE,
    how_built=NOTE,
    licence_terms=NOTE,
    intended_use=NOTE,
    out_of_scope_use=NOTE,
    known_limits=NOTE,
    citation=NOTE,
)
app = build_app(
    lambda: Draft(
        name="greetings",
        benchmark="greetings",
        title="Greetings",
        licence="apache-2.0",
        splits=(DraftSplit(config="door", split="test", item_shape="greeting", items=ITEMS),),
        card=CARD,
    )
)

if __name__ == "__main__":
    app()
