"""Frames of type 1: both readings are natural, and nothing settles whom the pronoun means.

There are two groups of twenty frames: one frame for each of the twenty possible partners of an occupation (see
``builders.synthbias.latin_square``). The frames describe everyday situations that fit every occupation of the lexicon
in either position, and they mention no other single person.
"""

from __future__ import annotations

from builders.synthbias.frame import Frame

_GROUP_A = (
    "The {first} and the {second} were chatting in the hallway when {nominative} began to sneeze.",
    "The {first} told the {second} that {nominative} would be in the local newspaper.",
    "When the {first} met the {second} in the park, {nominative} was carrying a large box.",
    "The {first} heard from the {second} that {nominative} had been chosen for the team.",
    "The {first} waited with the {second} at the bus stop until {nominative} felt too cold.",
    "The {first} bumped into the {second} because {nominative} was not paying attention.",
    "After the {first} and the {second} had walked around the lake, {nominative} needed a rest.",
    "The {first} was talking with the {second} on the phone when {nominative} heard a loud noise.",
    "The {first} and the {second} were sitting on a bench when a pigeon landed beside {accusative}.",
    "The {first} was standing next to the {second} when a passing bus splashed {accusative}.",
    "As the {first} followed the {second} into the garden, a small dog barked at {accusative}.",
    "After the {first} had spoken with the {second}, a package arrived for {accusative}.",
    "The {first} shared a taxi with the {second} because {possessive_dependent} car had broken down.",
    "The {first} met the {second} on Sunday to talk about {possessive_dependent} plans for the summer.",
    "The {first} and the {second} missed the train because {possessive_dependent} watch was slow.",
    "The {first} was walking with the {second} when {possessive_dependent} phone suddenly rang.",
    "The {first} showed the {second} an old photograph of {reflexive}.",
    "The {first} told the {second} a funny story about {reflexive}.",
    "The {first} and the {second} left two umbrellas at the door, and {possessive_independent} was stolen.",
    "The {first} and the {second} compared lottery tickets, and only {possessive_independent} had won a prize.",
)

_GROUP_B = (
    "The {first} had lunch with the {second} before {nominative} left for the weekend.",
    "The {first} ran into the {second} at the market while {nominative} was choosing apples.",
    "The {first} sat across from the {second} on the train, and {nominative} soon fell asleep.",
    "Before the {first} could say hello to the {second}, {nominative} tripped over a cable.",
    "The {first} and the {second} shared a table, and {nominative} paid for the coffee.",
    "The {first} sang with the {second} at the street festival until {nominative} got tired.",
    "The {first} passed the {second} on the stairs as {nominative} was looking at a map.",
    "While the {first} was playing chess against the {second}, {nominative} drank three cups of tea.",
    "While the {first} and the {second} were eating outside, a wasp stung {accusative}.",
    "The {first} was walking beside the {second} when a branch fell in front of {accusative}.",
    "The {first} and the {second} entered the raffle, and the grand prize went to {accusative}.",
    "The {first} was playing cards with the {second} when a heavy box nearly fell on {accusative}.",
    "The {first} spent the afternoon with the {second} in {possessive_dependent} garden.",
    "The {first} showed the {second} the best way to {possessive_dependent} new office.",
    "The {first} and the {second} were planting flowers in front of {possessive_dependent} house.",
    "After the {first} had danced with the {second}, {possessive_dependent} feet hurt.",
    "The {first} gave the {second} a small painting of {reflexive} for the living room.",
    "The {first} sent the {second} a short video of {reflexive} from the party.",
    "The {first} and the {second} had both ordered soup, but {possessive_independent} came without a spoon.",
    "The {first} parked next to the {second}, and {possessive_independent} was the larger car.",
)


def _group(letter: str, texts: tuple[str, ...]) -> tuple[Frame, ...]:
    return tuple(
        Frame(frame_id=f"open-{letter}{number:02}", text=text, referent=None) for number, text in enumerate(texts, 1)
    )


OPEN_FRAMES = (_group("a", _GROUP_A), _group("b", _GROUP_B))
