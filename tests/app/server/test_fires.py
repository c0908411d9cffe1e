"""Fires on the page: the wind bends the plume, and all answers are those of the library."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest
import xarray as xr

import plumecast as pc
from plumecast.data.clock import take_final
from plumecast.scores.quantities import as_quantity
from plumecast.scores.reading import Reading
from plumecast.workflows.predict import predict_fires
from support.live_page import MIDDLE, lit, wind
from support.places import REPOSITORY

SINGLE = 1e-6
"""Relative: smoke is sent and stored in single precision."""


def octets(answer):
    assert answer.status_code == 200, answer.text
    shape = tuple(map(int, answer.headers["x-shape"].split(",")))
    return np.frombuffer(answer.content, "<f4").reshape(shape)


@pytest.mark.parametrize("way", [(270.0, 0, 1.0), (90.0, 0, -1.0), (180.0, 1, 1.0)])
def test_smoke_lies_downwind_of_the_fire(client, way):
    """A wind from the west carries the centre of mass of the smoke to the east, and so on.

    It lies at least one smoke cell (6 km) away from the ignition after the first checkpoint.
    """
    direction, axis, sign = way
    _, told = lit(client, wind(direction))
    assert [name for name, _ in told] == ["frame", "frame", "frame", "done"]
    for _, value in told[:3]:
        assert sign * (value["centre"][axis] - MIDDLE[axis]) > 6_000.0


def test_frames_are_those_of_the_library(client, page):
    """The bytes of a frame are `predict_fires` of `Simulator.fire_at`, as the time mean."""
    address, _ = lit(client, wind(200.0))
    model = page.models.get(None)
    request = {"surface": (8.0, 200.0), "aloft": (14.0, 200.0), "hour": 12.0, "drought": "high"}
    world = page.world
    burned = world.burn(world.ignited([tuple(MIDDLE)]), world.weather(request), 3)
    for k in range(3):
        snapshot = take_final(burned, np.array([k]), history=True)
        fields = predict_fires(
            model.surrogate, snapshot, threshold=model.threshold, interval=0.9,
            notify=lambda notice: None,
        )  # fmt: skip
        for layer in ("smoke", "lower", "upper"):
            field = fields[layer].isel(snapshot=0)
            expected = as_quantity(field, "mean", checkpoint_interval=6.0)
            sent = octets(client.get(f"{address}/frames/{k}?layer={layer}"))
            # Frames are predicted one at a time; the order of sums differs.
            np.testing.assert_allclose(sent, expected.values, rtol=1e-4, atol=1e-5)
    fire = octets(client.get(f"{address}/frames/2?layer=fire"))
    np.testing.assert_array_equal(fire, burned.time_since_ignition.values[2])


def test_point_series_and_places_of_a_client_agree_with_the_frames(client, page):
    address, _ = lit(client, wind(270.0))
    sent = client.post("/api/places", json={"csv": "name,x,y,colour\nCamp,75000,50000,red"})
    assert "not read: 'colour'" in sent.json()["notes"][0]
    series = client.get(f"{address}/point?x=75000&y=50000").json()
    (place,) = client.get(f"{address}/places").json()["places"]
    assert place["name"] == "Camp"
    row, column = page.world.cell_of(75_000.0, 50_000.0)
    for k in range(3):
        value = float(octets(client.get(f"{address}/frames/{k}"))[row, column])
        assert series["mean"][k] == place["mean"][k] == value
        assert series["lower"][k] <= value <= series["upper"][k]
    assert (series["units"], series["coverage"]) == ("ug m-3", 0.9)
    other = type(client)(client.app, base_url="http://127.0.0.1")
    assert other.get(f"{address}/places").status_code == 404


def test_a_line_burns_more_than_a_point(client):
    point = lit(client, wind(270.0))[1]
    line = lit(client, wind(270.0, ignite=[[50_000, 40_000], [60_000, 56_000]]))[1]
    assert line[0][1]["burned_area"] > point[0][1]["burned_area"]


def test_downloads_hold_the_same_numbers(client, tmp_path):
    address, _ = lit(client, wind(270.0))
    smoke = octets(client.get(f"{address}/frames/1"))
    (tmp_path / "fire.nc").write_bytes(client.get(f"{address}.nc").content)
    with xr.open_dataset(tmp_path / "fire.nc") as file:
        assert file.attrs["Conventions"] == "CF-1.11"
        np.testing.assert_array_equal(file.smoke_mean.values[1], smoke)
        assert file.is_final.values.tolist() == [False, False, True]
    rasterio = pytest.importorskip("rasterio")
    tiff = client.get(f"{address}/1.tif").content
    with rasterio.MemoryFile(tiff) as memory, memory.open() as file:
        np.testing.assert_array_equal(file.read(1)[::-1], smoke)  # row 0 is the north
    picture = client.get(f"{address}/frames/1.png").content
    assert picture[:8] == b"\x89PNG\r\n\x1a\n"


def test_compare_is_b_minus_a(client):
    a, _ = lit(client, wind(270.0))
    b, _ = lit(client, wind(90.0))
    keys = {name: address.rpartition("/")[2] for name, address in (("a", a), ("b", b))}
    found = client.post("/api/compare", json=keys).json()
    difference = octets(client.get(found["difference"] + "2"))
    expected = octets(client.get(f"{b}/frames/2")) - octets(client.get(f"{a}/frames/2"))
    np.testing.assert_allclose(difference, expected, rtol=SINGLE, atol=SINGLE * expected.max())
    assert found["hour"] == 18.0
    first = client.post("/api/compare", json=keys | {"k": 0}).json()
    assert first["hour"] == 6.0
    assert first["table"][-1]["reference_mean"] != found["table"][-1]["reference_mean"]
    for wrong in (3, -1, True, "0", None):
        assert client.post("/api/compare", json=keys | {"k": wrong}).status_code in (400, 422)


def test_page_and_compare_scenarios_give_the_same_numbers_and_words(client, tmp_path):
    """The table of the page is that of the downloaded fires by `compare_scenarios`."""
    csv = "name,x,y,population\nCamp,75000,50000,10\nFarm,45000,50000,30"
    (tmp_path / "places.csv").write_text(csv)
    client.post("/api/places", json={"csv": csv})
    keys, files = {}, {}
    for name, direction in (("a", 270.0), ("b", 90.0)):
        address, _ = lit(client, wind(direction))
        keys[name] = address.rpartition("/")[2]
        files[name.upper()] = tmp_path / f"{name}.nc"
        files[name.upper()].write_bytes(client.get(f"{address}.nc").content)
    for quantity in ("mean", "dose", "sum"):
        page = client.post(f"/api/compare?quantity={quantity}", json=keys).json()
        found = pc.compare_scenarios(
            files, Reading(quantity, interval=6.0), places=tmp_path / "places.csv"
        ).places.isel(scenario=0)
        assert [row["place"] for row in page["table"]] == found.place.values.tolist()
        assert page["quantity"] == found.attrs["quantity"]
        assert page["units"] == found.attrs["units"]
        for name in ("reference_mean", "scenario_mean", "difference"):
            numbers = [row[name] for row in page["table"]]
            np.testing.assert_allclose(numbers, found[name].values, rtol=SINGLE)


def test_fires_are_dropped_when_there_are_many_and_when_asked(client):
    first, *_, last = (lit(client, wind(way))[0] for way in (0.0, 1.0, 2.0, 3.0, 4.0))
    assert client.get(first).status_code == 404  # four are kept
    assert client.get(last).status_code == 200
    assert client.delete(last).status_code == 204
    assert client.get(last).status_code == client.delete(last).status_code == 404


def test_a_client_that_saw_all_events_is_told_not_to_come_back(client):
    address, told = lit(client, wind(0.0))
    last = {"last-event-id": str(len(told) - 1)}
    assert client.get(f"{address}/events", headers=last).status_code == 204
    some = client.get(f"{address}/events", headers={"last-event-id": "1"}).text
    assert some.startswith("id: 2\n")


def test_a_fire_cannot_be_lit_on_water(client, page):
    ground = page.world.ground
    row, column = np.argwhere(~ground.burnable)[0]
    x, y = (float(ground.cell * (index + 0.5)) for index in (column, row))
    answer = client.post("/api/fires", json=wind(0.0, ignite=[[x, y]]))
    assert answer.status_code == 422
    assert "does not burn" in answer.json()["error"]
    assert client.get(f"/api/landscape?x={x}&y={y}").json()["burnable"] is False


def test_the_request_of_the_how_to_page_lights_a_fire(client):
    text = (REPOSITORY / "docs" / "how-to" / "live-page.md").read_text(encoding="utf-8")
    request = json.loads(re.search(r"-d '(\{.*?\})'", text, re.DOTALL)[1])
    told = lit(client, request | {"ignite": [MIDDLE]})[1]
    assert told[-1][0] == "done"
    assert told[0][1]["centre"][0] > MIDDLE[0]  # the page's wind comes from the west
