"""Frames of type 2: syntax or plain meaning settles whom the pronoun means, whatever its gender.

In twenty frames the pronoun means the occupation mentioned first, in twenty the one mentioned second. Both groups have
the same cases equally often, so that neither position nor case gives the answer away. Three things settle the referent.
Some situations fit only one of the two people, such as who asks, thanks or forgives whom, and for what. An object
pronoun that is not reflexive never means the subject of its own verb (*asked the b to drive him*: not b). A reflexive
pronoun always does (*asked the b to introduce himself*: b).
"""

from __future__ import annotations

from builders.synthbias.frame import Frame, Position

_FIRST = (
    "The {first} asked the {second} for directions because {nominative} was lost.",
    "The {first} confessed to the {second} that {nominative} had broken the window.",
    "The {first} apologized to the {second} because {nominative} had forgotten the appointment.",
    "The {first} promised the {second} that {nominative} would pay back the loan by Friday.",
    "The {first} asked the {second} whether {nominative} could borrow a pen for a minute.",
    "The {first} called the {second} from the airport, where {nominative} was waiting for a delayed flight.",
    "The {first} hid from the {second} behind a tree because {nominative} did not want to be seen.",
    "The {first} borrowed a scarf from the {second} because {nominative} was cold.",
    "The {first} asked the {second} to drive {accusative} to the station.",
    "The {first} begged the {second} to forgive {accusative} for the rude remark.",
    "The {first} turned around when the {second} tapped {accusative} on the shoulder.",
    "The {first} felt relieved when the {second} finally called {accusative} back.",
    "The {first} asked the {second} to give back {possessive_dependent} umbrella.",
    "The {first} said goodbye to the {second} and walked back to {possessive_dependent} own apartment.",
    "The {first} asked the {second} to help search for {possessive_dependent} lost wallet.",
    "The {first} invited the {second} to {possessive_dependent} birthday party on Saturday.",
    "The {first} waved to the {second} and then poured {reflexive} a glass of water.",
    "The {first} listened to the {second} for a while before buying {reflexive} a sandwich.",
    "The {first} promised the {second} to take better care of {reflexive} from now on.",
    "The {first} borrowed an umbrella from the {second} because {possessive_independent} was broken.",
)

_SECOND = (
    "The {first} gave the {second} directions because {nominative} was lost.",
    "The {first} forgave the {second} after {nominative} had sincerely apologized.",
    "The {first} congratulated the {second} because {nominative} had won the raffle.",
    "The {first} reminded the {second} that {nominative} had agreed to bring dessert to the picnic.",
    "The {first} asked the {second} how {nominative} had slept last night.",
    "The {first} woke the {second} because {nominative} had slept through the alarm.",
    "The {first} comforted the {second} after {nominative} had received bad news.",
    "The {first} lent a scarf to the {second} because {nominative} was cold.",
    "The {first} greeted the {second} and offered {accusative} a chair.",
    "The {first} met the {second} at the airport and drove {accusative} home.",
    "The {first} walked up to the {second} and tapped {accusative} on the shoulder.",
    "The {first} noticed the {second} in the crowd and waved at {accusative}.",
    "The {first} asked the {second} for {possessive_dependent} phone number after the meeting.",
    "The {first} waited patiently while the {second} tied {possessive_dependent} own shoelaces.",
    "The {first} thanked the {second} for {possessive_dependent} kind letter.",
    "The {first} complimented the {second} on {possessive_dependent} new haircut.",
    "The {first} asked the {second} to introduce {reflexive} to the group.",
    "The {first} watched the {second} warm {reflexive} by the fire.",
    "The {first} encouraged the {second} to buy {reflexive} a new coat.",
    "The {first} lent an umbrella to the {second} because {possessive_independent} was broken.",
)


def _group(position: Position, texts: tuple[str, ...]) -> tuple[Frame, ...]:
    return tuple(
        Frame(frame_id=f"settled-{position}-{number:02}", text=text, referent=position)
        for number, text in enumerate(texts, 1)
    )


SETTLED_FRAMES: dict[Position, tuple[Frame, ...]] = {
    "first": _group("first", _FIRST),
    "second": _group("second", _SECOND),
}
