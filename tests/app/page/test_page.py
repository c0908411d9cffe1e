"""The live page in a real browser, with the real server and no other network."""

from __future__ import annotations

import math
import re
from urllib.parse import urlsplit

import httpx
import pytest

from support.live_page import MIDDLE

SLOW = 180_000  # ms: a busy machine computes a fire in seconds
POLL = 50  # ms
LIT = f"ignite={MIDDLE[0]:.0f},{MIDDLE[1]:.0f}"
WEST_WIND = "wind=270,8,270,14,12&drought=high"
OTHER_SIDE = 90.0  # degrees: after half a turn of the wind, the plume is on the other side


def finished(page):
    page.locator("#status", has_text="First smoke after").wait_for(timeout=SLOW)
    page.locator("#number-plume").wait_for(timeout=SLOW)
    return page


@pytest.fixture
def burning(open_page):
    """A page with a finished fire under a west wind."""
    return lambda **how: finished(open_page(f"{LIT}&{WEST_WIND}", **how))


@pytest.fixture(scope="module")
def calm(open_shared_page):
    """A page with a finished fire, for tests that only look at it."""
    return finished(open_shared_page(f"{LIT}&{WEST_WIND}"))


def until(page, holds):
    """Wait until a condition of the page holds."""
    for _ in range(SLOW // POLL):
        if holds():
            return
        page.wait_for_timeout(POLL)
    raise AssertionError(page.inner_text("body"))


def bearing(page):
    """Degrees from the fire to the middle of its smoke, as the page says; NaN without smoke."""
    said = re.search(r"\((\d+)°\)", page.inner_text("#number-plume"))
    return float(said[1]) if said else math.nan


def smoke_sides(page):
    """Painted pixels of the map west and east of the ignition."""
    return page.evaluate("""() => {
        const sky = document.getElementById("sky");
        const pixels = sky.getContext("2d").getImageData(0, 0, sky.width, sky.height).data;
        const sides = [0, 0];
        for (let n = 0; n < sky.width * sky.height; n++)
            if (pixels[4 * n + 3] > 150) sides[(n % sky.width) > sky.width / 2 ? 1 : 0] += 1;
        return sides;
    }""")


def between(one, other):
    """Angle between two directions, 0 to 180 degrees."""
    return abs((one - other + 180.0) % 360.0 - 180.0)


def ignition(page):
    return re.search(r"ignite=([^&]*)", page.url)[1]


def test_turning_the_wind_moves_the_plume_to_the_other_side(burning):
    page = burning()
    west, east = smoke_sides(page)
    assert east > west
    assert between(bearing(page), 90.0) < OTHER_SIDE
    grip = page.get_by_role("slider", name="Wind at the surface, direction")
    assert grip.get_attribute("aria-valuetext") == "from 270°, west, 8 m/s"
    grip.focus()
    for _ in range(12):
        page.keyboard.press("Shift+ArrowRight")
    assert grip.get_attribute("aria-valuetext") == "from 90°, east, 8 m/s"

    def turned():
        west, east = smoke_sides(page)
        return between(bearing(finished(page)), 270.0) < OTHER_SIDE and west > east

    # A slow machine runs fires of winds in between too, so that the first end is not the last.
    until(page, turned)


def test_clicks_and_keys_light_points_and_a_drag_a_line(open_page):
    page = open_page(WEST_WIND)
    assert "Click the map" in page.inner_text("#empty")
    page.locator("#map").focus()  # the cross begins in the middle
    page.keyboard.press("ArrowRight")
    page.locator("#under", has_text=re.compile("x .* km, y .* km, .* m")).wait_for()
    page.keyboard.press("Enter")
    finished(page)
    assert float(ignition(page).split(",")[0]) > MIDDLE[0]
    grid = page.request.get(urlsplit(page.url)._replace(path="/api/state", fragment="").geturl())
    grid, box = grid.json()["grid"], page.locator("#map").bounding_box()
    right, up = (
        (MIDDLE[n] - grid[f"{axis}0"]) / grid[f"n{axis}"] / grid[f"d{axis}"]
        for n, axis in enumerate("xy")
    )
    x, y = box["x"] + right * box["width"], box["y"] + (1 - up) * box["height"]
    page.mouse.click(x, y)
    until(page, lambda: abs(float(ignition(page).split(",")[0]) - MIDDLE[0]) < grid["dx"])
    finished(page)
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x + 30, y + 30, steps=3)
    page.mouse.up()
    until(page, lambda: ignition(page).count(";") == 1)
    finished(page)


def test_the_address_restores_the_page(burning, open_page):
    page = burning()
    page.select_option("#layer", "footprint")
    page.locator("#hour").press("Home")
    first = '#numbers[data-time="0"]'
    page.locator(first).wait_for(timeout=SLOW)
    again = finished(open_page(urlsplit(page.url).fragment))
    again.locator(first).wait_for(timeout=SLOW)
    assert again.inner_text("#numbers") == page.inner_text("#numbers")
    assert again.input_value("#layer") == "footprint"
    assert again.input_value("#hour") == "0"


def test_two_fires_are_compared(burning):
    page = burning()
    page.click("#tab-compare")
    page.click("#keep")
    page.click("#tab-weather")
    page.fill("#aloft-from", "180")
    page.locator("#aloft-from").press("Tab")
    page.locator("#status", has_text="running").wait_for()
    finished(page)
    page.click("#tab-compare")
    page.locator("#compare-maps figure").nth(2).wait_for(timeout=SLOW)
    assert page.locator("#compare-maps figcaption").all_inner_texts() == ["A", "B", "B − A"]
    table, which = page.inner_text("#compare-table"), page.inner_text("#compare-which")
    assert "Burned area" in table
    assert "(mean over the grid)" in table  # the words of plumecast compare
    model = page.locator("#model option:checked").inner_text()
    assert which.count("lit at x ") == which.count(f"model {model}") == 2
    assert "aloft 180°" in which


def test_smoke_at_places_has_a_series(burning):
    page = burning(refused=1)  # the second table
    page.click("#tab-places")
    page.click("summary")
    page.fill("#csv", f'name,x,y,colour\n"<b>Camp</b>",{MIDDLE[0]},{MIDDLE[1]},red')
    page.click("#csv-add")
    page.locator("#csv-note", has_text="1 of 1 places added.").wait_for()
    assert "not read: 'colour'" in page.inner_text("#csv-note")
    page.locator("#places-chart svg").wait_for(timeout=SLOW)
    assert "<b>Camp</b>" in page.inner_text("#places-table")
    assert "place=" in page.url
    page.fill("#csv", "name,x,y\nCamp,here,there")
    page.click("#csv-add")
    page.locator("#csv-trouble", has_text="here").wait_for()


def test_a_reading_follows_the_picture(burning):
    """The value under the map is that of the layer and the time on the map, or none."""
    page = burning()
    page.check("input[name=tool][value=read]")
    page.click("#map", position={"x": 100, "y": 100})
    page.locator("#under", has_text="Smoke at x").wait_for()
    page.select_option("#layer", "footprint")
    page.locator("#under", has_text="Footprint at x").wait_for()
    assert page.inner_text("#under").endswith((": yes", ": no"))
    page.click("#put-out")
    page.wait_for_function("document.getElementById('under').textContent === ''")


def test_the_threshold_changes_the_scores_of_the_store(calm):
    calm.click("#tab-store")
    calm.locator("#roc svg").wait_for(timeout=SLOW)
    assert calm.locator("#store-maps canvas").count() == 3
    scores = calm.inner_text("#store-scores")
    calm.locator("#threshold").press("Home")
    until(calm, lambda: calm.inner_text("#store-scores") != scores)


def test_a_training_adds_a_model_and_a_point_of_the_curve(open_page):
    page = open_page()
    models = page.locator("#model option").count()
    page.click("#tab-train")
    page.select_option("#recipe", "preset:quick")
    page.fill("#ignitions", "4")
    page.click("#train")
    page.locator("#train-status", has_text="Trained in").wait_for(timeout=2 * SLOW)
    page.locator("#curve circle").first.wait_for()
    assert page.locator("#model option").count() == models + 1
    assert "nearest fire" in page.inner_text("#train-table")


def test_everything_can_be_downloaded(calm):
    calm.click("#tab-download")
    starts = {"#get-nc": (b"\x89HDF", b"CDF"), "#get-tif": (b"II*\0", b"MM\0*"),
              "#get-png": (b"\x89PNG",)}  # fmt: skip
    for link, magic in starts.items():
        with calm.expect_download(timeout=SLOW) as coming:
            calm.click(link)
        assert coming.value.path().read_bytes().startswith(magic), link
    assert calm.input_value("#link") == calm.url


def test_an_ignition_outside_the_map_is_refused_in_words(open_page):
    page = open_page(f"ignite=-5000,-5000&{WEST_WIND}", refused=1)
    page.locator("#trouble", has_text="outside").wait_for(timeout=SLOW)
    assert not page.inner_text("#numbers")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_nothing_is_wider_than_the_window(calm, scheme):
    calm.emulate_media(color_scheme=scheme)
    for width in (400, 1280):
        calm.set_viewport_size({"width": width, "height": 900})
        for tab in calm.get_by_role("tab").all():
            tab.click()
            inside, window = calm.evaluate("[document.documentElement.scrollWidth, innerWidth]")
            assert inside <= window, tab.inner_text()
    assert calm.evaluate("document.documentElement.dataset.theme") == scheme


def test_where_no_fire_can_be_lit_the_page_shows_those_of_the_store(open_page, live_address):
    """As for a store of WRF: the landscape is not known, and nothing asks for it."""
    state = httpx.get(f"{live_address}api/state").json()
    state |= {"can_ignite": False, "why_not": "the landscape of these fires is not known"}
    page = open_page(f"{LIT}&panel=weather", state=state)  # a link from another server
    asked = []
    page.on("request", lambda request: asked.append(urlsplit(request.url).path))
    page.reload()
    page.locator("#status", has_text="Predicted smoke of fire s0-").wait_for(timeout=SLOW)
    assert sum(smoke_sides(page)) > 0
    assert page.locator("#tab-store").get_attribute("aria-selected") == "true"
    assert page.locator("input[value=ignite]").is_disabled()
    assert "is not known" in page.inner_text("#why-not")
    assert "ignite=" not in page.url
    page.locator("#hour").press("Home")
    page.locator("#status", has_text="after 6 h").wait_for()
    assert page.input_value("#store-hour") == "0"
    page.locator("#map").click()
    page.locator("#under", has_text="Predicted smoke at x").wait_for()
    page.locator("#map").press("ArrowRight")
    page.locator("#under", has_text=re.compile(r"^x .* km, y .* km$")).wait_for()
    assert [path for path in asked if path.startswith(("/api/landscape", "/api/fires"))] == []


def test_the_page_of_the_interface_has_no_complaint(open_page, live_address):
    page = open_page()
    page.goto(f"{live_address}api")
    assert "/api/compare" in page.inner_text("body")
    page.get_by_role("link", name="Back to the page").click()
    page.locator("#tab-weather[aria-selected]").wait_for()


def test_the_tab_key_reaches_every_control_in_the_order_of_the_page(calm):
    calm.click("#tab-weather")
    seen = {}
    calm.locator("#skip").focus()
    for _ in range(60):
        name, named = calm.evaluate("""() => {
            const now = document.activeElement;
            const named = now.getAttribute("aria-label") || now.textContent.trim()
                || (now.labels && [...now.labels].map((label) => label.textContent).join(" "));
            return [now.id || now.getAttribute("aria-label") || now.value, Boolean(named)];
        }""")
        if name in seen:
            break
        seen[name] = named
        calm.keyboard.press("Tab")
    order = ["skip", "model", "map", "play", "hour", "tab-weather", "surface-from", "again"]
    assert [name for name in seen if name in order] == order
    assert {"Wind at the surface, direction", "Wind aloft, direction"} <= set(seen)
    assert all(seen.values()), seen
