"""Labels of the scatter plot."""

from __future__ import annotations

from itertools import combinations

from biasboard.ground.charts import Point, place_labels

PLANE = {"width": 500.0, "height": 400.0}


def point(text: str, x: float, y: float) -> Point:
    x, y = 500 * x, 400 * (1 - y)
    return Point(text=text, x=x, y=y, across=(x, x), down=(y, y))


def pixels(points: list[Point]) -> list[tuple[float, float, float, float]]:
    """Left, right, top and bottom of each label."""
    placed = filter(None, place_labels(points, **PLANE))
    return [(x, x + len(text) * 7.2, y - 6, y + 6) for x, y, text, _ in placed]


def test_labels_lie_neither_on_each_other_nor_on_the_intervals_nor_beyond_the_edges() -> None:
    points = [point(f"a-model-with-a-long-name-{number}", 0.5, 0.5) for number in range(9)]
    boxes = pixels([one._replace(across=(200, 300), down=(160, 240)) for one in points])
    assert len(boxes) == 9
    for (left, right, top, bottom), (other_left, other_right, other_top, other_bottom) in combinations(boxes, 2):
        assert min(right, other_right) <= max(left, other_left) or min(bottom, other_bottom) <= max(top, other_top)
    for left, right, top, bottom in boxes:
        assert not (top < 200 < bottom and left < 300 and right > 200), "on the horizontal interval"
    for left, right, top, bottom in pixels([point("at the corner", x, y) for x in (0.0, 1.0) for y in (0.0, 1.0)]):
        assert left >= -1
        assert right <= 501
        assert top >= -7
        assert bottom <= 407


def test_a_label_that_is_not_beside_its_mark_has_a_line_and_one_without_room_is_left_out() -> None:
    places = place_labels([point(f"model-{number}", 0.5, 0.5) for number in range(80)], **PLANE)
    leads = [lead for *_, lead in filter(None, places)]
    assert places[0] is not None
    assert leads[0] is None
    assert 10 < len(leads) < 80
    assert any(lead is not None for lead in leads)
