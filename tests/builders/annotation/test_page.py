"""The page in a browser: by keyboard, by touch, in the dark, and without asking anybody else."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, expect

from builders.synthbias.annotation.annotated import AnnotatedDataset
from builders.synthbias.annotation.entrance import TEST, TEST_PAIRS
from builders.synthbias.annotation.session import Session, sampled_pairs
from builders.synthbias.annotation.state import State, read_state, write_state
from builders.synthbias.annotation.votes import Ballot, ballots_of
from tests.builders.annotation.made_votes import EMPTY, active, right, serving
from tests.leaderboard.browsing import visit

pytestmark = [pytest.mark.browser, pytest.mark.slow]


@contextmanager
def served(annotated: AnnotatedDataset, folder: Path, *, passed: bool = False) -> Iterator[str]:
    """The address of the page of anna, who may have passed the test before."""
    if passed:
        write_state(folder, EMPTY, State((), active("anna")))
    pairs = sampled_pairs(annotated, 3, 0)
    with serving(Session(annotated=annotated, folder=folder, annotator_id="anna", pairs=pairs)) as address:
        yield address


def press(page: Page, ballot: Ballot) -> None:
    """Answer the sentence that is shown by keyboard; the page has yet to show the next."""
    keys = ["n"] if ballot.coherent is False else ["y" if answer else "n" for answer in ballot]
    for key in keys[:-1]:
        page.keyboard.press(key)
    with page.expect_response("**/vote"):
        page.keyboard.press(keys[-1])


def test_the_whole_work_by_keyboard(annotated: AnnotatedDataset, browser: Browser, tmp_path: Path) -> None:
    by_text = {item.sentence: item for item in annotated.items.values()}
    with served(annotated, tmp_path) as address:
        found = visit(browser, address)
        page = found.page
        expect(page.locator(".example")).to_have_count(3)
        expect(page.locator("#test-note")).to_be_visible()
        page.keyboard.press("Enter")
        for solved in TEST:
            expect(page.locator("#sentence")).to_have_text(solved.sentence.text)
            press(page, solved.answers)
        expect(page.locator("#note")).to_have_text("Test passed: 20/20.")
        for done in range(3):
            expect(page.locator("#count")).to_have_text(f"{done} of 3")
            press(page, right(by_text[page.locator("#sentence").inner_text()]))
        expect(page.locator("#end-title")).to_have_text("Done")
        assert found.complaints == []
        assert [url for url in found.requests if not url.startswith((address, "data:"))] == []
        page.context.close()
    ballots = ballots_of(read_state(tmp_path).standing_votes.values())
    kept = {item_id: found["anna"] for item_id, found in ballots.items() if item_id not in TEST_PAIRS}
    assert len(kept) == 3
    assert all(ballot == right(annotated.items[item_id]) for item_id, ballot in kept.items())


def test_a_phone_by_touch_in_the_dark_has_a_page_that_resumes_and_that_axe_accepts(
    annotated: AnnotatedDataset, browser: Browser, tmp_path: Path
) -> None:
    with served(annotated, tmp_path, passed=True) as address:
        context = browser.new_context(
            viewport={"width": 360, "height": 740},
            color_scheme="dark",
            has_touch=True,
            is_mobile=True,
            bypass_csp=True,
        )
        page = context.new_page()
        page.goto(address)
        expect(page.locator(".example")).to_have_count(3)
        assert [violation["id"] for violation in Axe().run(page).response["violations"]] == []
        page.get_by_role("button", name="Start").tap()
        expect(page.locator("#undo")).to_be_disabled()
        for name in ("coherent", "refer to", "refer to"):
            button = page.locator(".question.current").get_by_role("button", name="yes")
            expect(page.locator(".question.current p")).to_contain_text(name)
            box = button.bounding_box()
            assert box is not None
            assert min(box["height"], box["width"]) >= 44
            button.tap()
        expect(page.locator("#count")).to_have_text("1 of 3")
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        assert [violation["id"] for violation in Axe().run(page).response["violations"]] == []
        page.reload()
        # Whoever comes back is asked at once.
        expect(page.locator("#sentence")).to_be_visible()
        expect(page.locator("#count")).to_have_text("1 of 3")
        context.close()
