"""Labels of the scatter plot."""

from __future__ import annotations

from itertools import combinations

from biasboard.ground.charts.labels import Point, place_labels

PLANE = {"width": 500.0, "height": 400.0}


def point(text: str, x: float, y: float) -> Point:
    x, y = 500 * x, 400 * (1 - y)
    return Point(text=text, x=x, y=y, across=(x, x), down=(y, y))


def pixels(points: list[Point]) -> list[tuple[float, float, float, float]]:
    """Left, right, top and bottom of each label, of which none covers another."""
    placed = filter(None, place_labels(points, **PLANE))
    boxes = [(place.x, place.x + len(place.text) * 7.2, place.y - 6, place.y + 6) for place in placed]
    for (left, right, top, bottom), (other_left, other_right, other_top, other_bottom) in combinations(boxes, 2):
        assert min(right, other_right) <= max(left, other_left) or min(bottom, other_bottom) <= max(top, other_top)
    return boxes


def test_labels_of_equal_values_lie_neither_on_each_other_nor_on_the_intervals() -> None:
    assert len(pixels([point(f"model-{number}", 0.5, 0.5) for number in range(6)])) == 6
    points = [
        point(f"a-model-with-a-long-name-{number}", 0.5, 0.5)._replace(across=(200, 300), down=(160, 240))
        for number in range(9)
    ]
    boxes = pixels(points)
    assert len(boxes) == 9
    for left, right, top, bottom in boxes:
        assert not (top < 200 < bottom and left < 300 and right > 200), "on the horizontal interval"


def test_labels_stay_inside_at_the_edges() -> None:
    for left, right, top, bottom in pixels([point("at the corner", x, y) for x in (0.0, 1.0) for y in (0.0, 1.0)]):
        assert left >= -1
        assert right <= 501
        assert top >= -7
        assert bottom <= 407


def test_a_label_that_is_not_beside_its_mark_has_a_line_and_one_without_room_is_left_out() -> None:
    places = place_labels([point(f"model-{number}", 0.5, 0.5) for number in range(80)], **PLANE)
    written = [place for place in places if place is not None]
    assert 10 < len(written) < 80
    assert (places[0], written[0].lead) == (written[0], None)
    assert any(place.lead is not None for place in written)
    (long,) = place_labels([point("x" * 60, 0.5, 0.5)], **PLANE)
    assert long is not None
    assert (len(long.text), long.text[12]) == (26, "…")
