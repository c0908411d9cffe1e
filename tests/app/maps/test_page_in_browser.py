"""The page of a map in a real browser, without a network."""

from __future__ import annotations

import numpy as np
import pytest

import plumecast as pc
from support.browser import shown_alone
from support.snapshots import make_snapshots

FIRE = "fire-01-high"
WORDS = 0.01  # relative; the page shows three digits
AA = 4.5  # contrast of text


@pytest.fixture(scope="module")
def fires():
    return make_snapshots(fires=4, checkpoints=3)


@pytest.fixture(scope="module")
def path(fires, tmp_path_factory):
    folder = tmp_path_factory.mktemp("page")
    table = folder / "places.csv"
    table.write_text('name,x,y\n"<i>Town</i>",15000,12000\n')
    out = folder / "map.html"
    pc.draw_map(fires, out, fire=[FIRE, "fire-00-low"], points=table)
    return out


@pytest.fixture(params=[(1280, "light"), (400, "dark")], ids=["1280", "400"])
def shown(request, browser, path):
    """The page, opened from its file; it must not complain or ask for anything else."""
    with shown_alone(browser, path, *request.param) as page:
        page.wait_for_selector("html[data-state=ready]")
        yield page


def pixels(page) -> str:
    return page.evaluate("document.querySelector('canvas.field-layer').toDataURL()")


def value(page, layer: str) -> float:
    words = page.locator(f"[data-layer={layer}]").inner_text()
    return float(words.split()[0])


def test_the_slider_changes_the_picture_by_keyboard(shown):
    last = pixels(shown)
    assert shown.locator("[data-part=time]").inner_text() == "18 h since ignition"
    shown.locator("[data-part=slider]").focus()
    shown.keyboard.press("ArrowLeft")
    assert shown.locator("[data-part=time]").inner_text() == "12 h since ignition"
    assert pixels(shown) != last
    shown.keyboard.press("End")
    assert pixels(shown) == last


def test_play_goes_through_the_times(shown):
    shown.click("[data-part=play]")
    assert shown.locator("[data-part=time]").inner_text() == "6 h since ignition"
    shown.wait_for_selector("[data-part=time]:has-text('18 h')")
    shown.wait_for_selector("[data-part=play]:has-text('Play')")


def test_a_click_shows_the_value_of_the_store(shown, fires):
    rows = np.flatnonzero(fires.fire_id.values == FIRE)
    own = fires.isel(snapshot=rows[-1])
    mean = pc.scores.as_quantity(fires.smoke.isel(snapshot=rows)).values[-1]
    row, column = np.unravel_index(int(mean.argmax()), mean.shape)
    box = shown.locator("canvas.field-layer").bounding_box()
    shown.mouse.click(
        box["x"] + (column + 0.5) / 10 * box["width"],
        box["y"] + (8 - row - 0.5) / 8 * box["height"],
    )
    assert value(shown, "smoke") == pytest.approx(mean[row, column], rel=0.02 + WORDS)
    burned = float(own.time_since_ignition.values[row, column])
    assert value(shown, "time_since_ignition") == pytest.approx(burned, abs=0.05)
    assert shown.locator("[data-part=chart] canvas").count() == 1
    shown.click("[data-part=west]")
    near = mean[row, column - 1]
    assert value(shown, "smoke") == pytest.approx(near, rel=0.02 + WORDS)


def test_another_fire_and_layer_can_be_chosen(shown):
    before = pixels(shown)
    shown.select_option("#scene", label="fire-00-low")
    shown.wait_for_timeout(300)
    assert pixels(shown) != before
    shown.select_option("#layer", "time_since_ignition")
    assert "(h)" in shown.locator(".legend-title").inner_text()


def test_places_are_names_not_markup(shown):
    shown.get_by_role("button", name="<i>Town</i>").click()
    assert shown.locator("[data-part=where]").inner_text().startswith("<i>Town</i> (x 15 km")


def test_a_saved_picture_has_the_legend(shown):
    with shown.expect_download() as saved:
        shown.click("[data-part=save]")
    assert saved.value.suggested_filename == "map.png"
    assert saved.value.path().read_bytes()[:4] == b"\x89PNG"


def test_every_control_has_a_name_and_text_has_contrast(shown):
    unnamed = shown.evaluate(
        "[...document.querySelectorAll('input, select, button')].filter(item =>"
        " !(item.labels?.length || item.textContent.trim() || item.getAttribute('aria-label')))"
        ".length"
    )
    assert unnamed == 0
    shown.locator("[data-part=map]").focus()
    shown.keyboard.press("Enter")
    assert shown.locator("[data-part=where]").inner_text().startswith("x ")
    ratios = shown.evaluate(CONTRAST)
    assert len(ratios) > 10
    assert min(ratios) >= AA


CONTRAST = """() => {
  const numbers = (text) => text.match(/[\\d.]+/g).map(Number);
  const light = (rgb) => rgb.slice(0, 3).map((c) => c / 255)
    .map((c) => (c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4))
    .reduce((sum, c, k) => sum + c * [0.2126, 0.7152, 0.0722][k], 0);
  const behind = (item) => {
    for (let at = item; at; at = at.parentElement) {
      const colour = numbers(getComputedStyle(at).backgroundColor);
      if (colour.length === 3 || colour[3] > 0.5) return colour;
    }
    return [255, 255, 255];
  };
  const texts = "h1, h2, p, th, td, label, button, output, .legend-ticks span";
  return [...document.querySelectorAll(texts)]
    .filter((item) => item.textContent.trim() && item.offsetParent && !item.disabled)
    .map((item) => {
      const [a, b] = [light(numbers(getComputedStyle(item).color)), light(behind(item))];
      return (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    });
}"""
