"""Maps of sources: what they show, what they refuse, and the files."""

from __future__ import annotations

import base64
import json
import re
import zipfile
import zlib
from xml.etree import ElementTree

import numpy as np
import pyproj
import pytest
import xarray as xr

import plumecast as pc
from plumecast.app.maps import layers
from plumecast.app.maps.colours import NOTHING
from plumecast.app.maps.draw import map_content
from plumecast.app.maps.html import page_data
from plumecast.app.maps.kmz import Warp
from plumecast.base.checkpoints import INTERVAL
from plumecast.base.errors import PlumecastError
from plumecast.scores.reading import Reading
from plumecast.workflows.statistics.request import Statistics
from support.places import REPOSITORY
from support.projected import CRS, on_earth
from support.snapshots import CELL, make_snapshots

HOSTILE = "</script><img src=x onerror=alert(1)>&$title\x07"
LARGEST_PAGE = 5_000_000  # bytes, of 60 snapshots
SINGLE = 1e-6  # relative, of fields in single precision
KML = {"k": "http://www.opengis.net/kml/2.2"}
DEGREES = 1e-5  # of longitude and latitude in KML, about a metre


@pytest.fixture(scope="module")
def fires() -> xr.Dataset:
    return make_snapshots(fires=4, checkpoints=3)


def content_of(source, **choices):
    return map_content(source, **choices)[0]


def data_in(page: str) -> dict:
    return json.loads(re.search(r'id="map-data">(.*?)</script>', page, re.DOTALL)[1])


def levels_of(data: dict, scene: int, layer: str) -> np.ndarray:
    grid = data["grid"]
    packed = base64.b64decode(data["scenes"][scene]["fields"][layer])
    return np.frombuffer(zlib.decompress(packed), np.uint8).reshape(-1, grid["ny"], grid["nx"])


def test_a_page_has_the_time_mean_of_the_store_within_its_resolution(fires, tmp_path):
    drawn = pc.draw_map(fires, tmp_path / "map.html", fire="fire-00-high")
    data = data_in(drawn.path.read_text(encoding="utf-8"))
    one = fires.isel(snapshot=fires.fire_id.values == "fire-00-high")
    mean = pc.scores.as_quantity(one.smoke).values
    scale = data["scales"][data["layers"][0]["scale"]]
    shown = np.array(scale["values"], dtype=float)[levels_of(data, 0, "smoke")]
    np.testing.assert_array_equal(shown == 0.0, mean == 0.0)
    seen = mean >= scale["low"]
    assert seen.sum() > 10
    written = 1e-4  # relative; values are written with five digits
    np.testing.assert_allclose(shown[seen], mean[seen], rtol=scale["resolution"] + written)
    assert data["scenes"][0]["hours"] == [6.0, 12.0, 18.0]
    assert (data["layers"][0]["name"], data["layers"][0]["units"]) == ("smoke", "µg m⁻³")
    assert "time-mean" in data["layers"][0]["meaning"]


def test_a_page_needs_nothing_but_itself(fires, tmp_path):
    page = pc.draw_map(fires, tmp_path / "map.html").path.read_text(encoding="utf-8")
    assert re.findall(r'(?:src|href)="[^"]*"', page.split("<script", 1)[0]) == []
    assert "default-src 'none'" in page
    assert page.count("'sha256-") == page.count("<style>") + page.count('<script type="') - 1
    assert "sourceMappingURL" not in page
    module = page.rsplit('<script type="module">', 1)[1]
    assert not re.search(r"^(import|export) ", module, re.MULTILINE)


def test_sixty_snapshots_of_the_papers_grid_are_small(tmp_path):
    made = make_snapshots(fires=6, checkpoints=10, shape=(80, 100))
    rng = np.random.default_rng(0)
    noisy = made.smoke * rng.uniform(0.5, 1.5, made.smoke.shape).astype(np.float32)
    made["smoke"] = noisy.assign_attrs(made.smoke.attrs)
    drawn = pc.draw_map(made, tmp_path / "map.html")
    assert len(drawn.scenes) == 6
    assert drawn.path.stat().st_size < LARGEST_PAGE


def test_names_of_fires_places_and_titles_are_escaped(fires, tmp_path):
    named = fires.assign_coords(
        fire_id=("snapshot", np.where(fires.fire_id.values == "fire-00-low", HOSTILE, "b"))
    )
    named = named.isel(snapshot=slice(0, 6))
    table = tmp_path / "places.csv"
    table.write_text('name,x,y\n"<b>Town</b>",3000,3000\n')
    page = pc.draw_map(
        named, tmp_path / "map.html", points=table, title=HOSTILE, fire=HOSTILE
    ).path.read_text(encoding="utf-8")
    assert "<img" not in page.replace("<img>", "")
    assert "<b>Town" not in page
    data = data_in(page)
    assert data["scenes"][0]["name"] == HOSTILE
    assert data["title"] == HOSTILE
    assert data["places"][0]["name"] == "<b>Town</b>"
    assert (data["places"][0]["row"], data["places"][0]["column"]) == (1, 1)


def test_the_largest_fires_are_chosen_and_all_can_be_named(fires):
    areas = fires.burned_area.groupby(fires.fire_id).max()
    order = areas.fire_id.values[np.argsort(-areas.values, kind="stable")]
    assert content_of(fires, most=1).scenes[0].name == order[0]
    every = content_of(fires)
    assert {scene.name for scene in every.scenes} == set(fires.fire_id.values)
    named = content_of(fires, fires=("fire-01-low",))
    assert [scene.name for scene in named.scenes] == ["fire-01-low"]


def test_layers_of_one_unit_share_a_scale(fires):
    ends = {"units": "ug m-3"}
    predicted = xr.Dataset(
        {"smoke": (0.5 * fires.smoke).assign_attrs(fires.smoke.attrs),
         "lower": (0.1 * fires.smoke).assign_attrs(ends, long_name="lower end"),
         "upper": (2.0 * fires.smoke).assign_attrs(ends, long_name="upper end"),
         "footprint": (fires.smoke > 1.0).astype(np.int8)},
    ).drop_vars("burned_area")  # fmt: skip
    content = content_of([fires, predicted])
    names = [layer.name for layer in content.layers]
    assert names == [
        "smoke", "predicted", "difference", "lower", "upper", "footprint", "time_since_ignition",
    ]  # fmt: skip
    amounts = {content.layer(name).scale for name in ("smoke", "predicted", "lower", "upper")}
    assert len(amounts) == 1
    assert content.layer("smoke").title == "Observed smoke"
    shown = content.scenes[0].fields
    np.testing.assert_allclose(shown["difference"], -0.5 * shown["smoke"], rtol=SINGLE)
    np.testing.assert_allclose(shown["upper"], 2.0 * shown["smoke"], rtol=SINGLE)
    swapped = content_of([predicted, fires])
    assert [layer.name for layer in swapped.layers] == names


def test_a_model_is_shown_beside_the_observed(fires):
    surrogate = pc.fit_surrogate(fires)
    content = content_of(fires, model=surrogate, fires=("fire-00-low",))
    own = fires.isel(snapshot=fires.fire_id.values == "fire-00-low")
    expected = pc.scores.as_quantity(surrogate.predict(own)).values
    shown = content.scenes[0].fields
    np.testing.assert_allclose(shown["predicted"], expected, rtol=1e-5, atol=1e-4)
    np.testing.assert_allclose(
        shown["difference"], shown["predicted"] - shown["smoke"], rtol=1e-5, atol=1e-4
    )


def test_quantities_are_those_of_the_store(fires):
    dose = content_of(fires, reading=Reading("dose"), most=1)
    total = content_of(fires, reading=Reading("sum"), most=1)
    sums = total.scenes[0].fields["smoke"]
    half = 6.0 * 0.5 * (sums + np.concatenate([np.zeros_like(sums[:1]), sums[:-1]]))
    np.testing.assert_allclose(dose.scenes[0].fields["smoke"], half, rtol=1e-5)
    assert dose.layers[0].units == "µg m⁻³ h"
    unknown = fires.copy()
    del unknown.smoke.attrs[INTERVAL]
    with pytest.raises(PlumecastError, match="does not record the interval"):
        content_of(unknown)
    stated = content_of(unknown, reading=Reading("dose", interval=6.0), most=1)
    np.testing.assert_array_equal(stated.scenes[0].fields["smoke"], dose.scenes[0].fields["smoke"])


def test_rows_from_north_to_south_are_turned(fires):
    turned = content_of(fires.isel(y=slice(None, None, -1)), most=1)
    straight = content_of(fires, most=1)
    assert turned.grid == straight.grid
    one, other = (content.scenes[0].fields["smoke"] for content in (turned, straight))
    np.testing.assert_array_equal(one, other)


def test_statistics_have_a_layer_for_every_threshold_with_a_title(fires):
    statistics = pc.ensemble_statistics(
        pc.fit_surrogate(fires), fires, Reading(thresholds=[1.0, 10.0]), Statistics([0.5])
    )
    content = content_of(statistics)
    titles = {layer.name: layer.title for layer in content.layers}
    assert titles["mean_smoke_lower"] == "Mean smoke, lower end of the interval"
    assert titles["exceedance threshold=1"] == "Chance of more smoke, threshold 1"
    assert titles["smoke_quantile quantile=0.5"] == "Smoke of many fires, quantile 0.5"
    assert content.layer("exceedance threshold=10").kind == "share"
    shown = content.scenes[0].fields["exceedance threshold=10"][0]
    np.testing.assert_allclose(shown, statistics.exceedance.values[1], rtol=SINGLE)
    assert page_data(content)["scenes"][0]["hours"] is None


def test_a_prediction_shows_every_quantity_once(fires, tmp_path):
    predicted = fires[["smoke"]].assign(lower=0.5 * fires.smoke, upper=2.0 * fires.smoke)
    for name in ("smoke", "lower", "upper"):  # as `plumecast predict --interval` writes them
        predicted[f"{name}_mean"] = pc.scores.as_quantity(
            predicted[name].assign_attrs(fires.smoke.attrs), "mean"
        )
    bars = ("Lower end of the error bar", "Upper end of the error bar")
    assert pc.draw_map(predicted, tmp_path / "one.html").layers == ("Smoke", *bars)
    drawn = pc.draw_map([fires, predicted], tmp_path / "two.html")
    assert drawn.layers == (
        "Observed smoke", "Predicted smoke", "Predicted − observed smoke", *bars,
        "Time since ignition",
    )  # fmt: skip


def test_scenarios_of_a_comparison_can_be_chosen(fires):
    """Ends of a difference are not called error bars."""
    scenarios = {
        name: fires.assign(smoke=(factor * fires.smoke).assign_attrs(fires.smoke.attrs))
        for name, factor in (("low", 1.0), ("high", 2.0), ("more", 3.0))
    }
    maps = pc.compare_scenarios(scenarios, Reading(thresholds=[10.0])).maps
    content = content_of(maps)
    assert [scene.name for scene in content.scenes] == ["high", "more"]
    assert content.layer("difference").kind == "difference"
    shown = content.scenes[1].fields["difference"][0]
    np.testing.assert_allclose(shown, maps.difference.values[1], rtol=SINGLE)
    assert content.layer("lower").title == "Lower end of the 95 % interval of the difference"
    assert content.layer("exceedance_upper threshold=10").title == (
        "Upper end of the 95 % interval of that difference, threshold 10"
    )


def test_fires_without_smoke_are_shown_with_a_note(fires, tmp_path):
    drawn = pc.draw_map(fires.drop_vars("smoke"), tmp_path / "map.html")
    assert drawn.layers == ("Time since ignition",)
    assert "without smoke" in drawn.notes[0]


def kml_of(path):
    """The document of a KMZ, and its pictures by name."""
    with zipfile.ZipFile(path) as file:
        pictures = {name: file.read(name) for name in file.namelist()}
    return ElementTree.fromstring(pictures.pop("doc.kml")), pictures


def test_kmz_has_overlays_with_times_and_a_legend(tmp_path):
    path = tmp_path / "map.kmz"
    made = on_earth(fires=2, checkpoints=3)
    pc.draw_map(made, path, ignition_time="2026-08-01T18:00Z", title="A & <B>")
    root, pictures = kml_of(path)
    assert {data[:4] for data in pictures.values()} == {b"\x89PNG"}
    begins = [item.text for item in root.findall(".//k:GroundOverlay/k:TimeSpan/k:begin", KML)]
    assert begins == ["2026-08-02T00:00:00Z", "2026-08-02T06:00:00Z", "2026-08-02T12:00:00Z"]
    assert {item.text for item in root.findall(".//k:href", KML)} == set(pictures)
    assert root.find(".//k:Document/k:name", KML).text.startswith("A & <B>")
    (legend,) = root.findall(".//k:ScreenOverlay/k:Icon/k:href", KML)
    assert legend.text in pictures
    move = pyproj.Transformer.from_crs(CRS, 4326, always_xy=True)
    edges = [float(end(made[axis])) + side * CELL / 2 for side, end in ((-1, np.min), (1, np.max))
             for axis in "xy"]  # fmt: skip
    bounds = dict(zip(("west", "south", "east", "north"), move.transform_bounds(*edges),
                      strict=True))  # fmt: skip
    assert -121.0 < bounds["west"] < bounds["east"] < -119.5  # California
    for box in root.findall(".//k:LatLonBox", KML):
        for edge, value in bounds.items():
            assert float(box.find(f"k:{edge}", KML).text) == pytest.approx(value, abs=DEGREES)
    for ring in root.findall(".//k:coordinates", KML):
        longitude, latitude = np.array([p.split(",") for p in ring.text.split()], float).T
        assert bounds["west"] <= longitude.min() <= longitude.max() <= bounds["east"]
        assert bounds["south"] <= latitude.min() <= latitude.max() <= bounds["north"]


def test_the_picture_of_a_kmz_lies_where_the_cells_are(tmp_path):
    """The pixel at the longitude and latitude of the centre of a cell has the level of the cell."""
    content = content_of(on_earth(fires=2, checkpoints=1))
    warp = Warp(content, tmp_path / "map.kmz")
    numbers = np.arange(1, 81, dtype=np.uint8).reshape(8, 10)
    picture = warp.levels(numbers)
    move = pyproj.Transformer.from_crs(CRS, 4326, always_xy=True)
    longitude, latitude = move.transform(*np.meshgrid(content.grid.x, content.grid.y))
    box = warp.box
    right = (longitude - box["west"]) / (box["east"] - box["west"])
    down = (box["north"] - latitude) / (box["north"] - box["south"])
    rows, columns = (down * picture.shape[0]).astype(int), (right * picture.shape[1]).astype(int)
    np.testing.assert_array_equal(picture[rows, columns], numbers)
    assert picture[0, 0] == NOTHING  # a corner of the turned grid


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"fire": "nobody"}, "fire='nobody' is not in the source; it has fire-00-low"),
        ({"reading": Reading(interval=1.0)}, "checkpoint_interval=1 contradicts the 6 h"),
        ({"layer": "ozone"}, "layer='ozone' is unknown; choose from smoke, time_since_ignition"),
        ({"reading": Reading(hours=[7.0])}, "hours=7: fire .* has 6, 12, 18 h"),
        ({"out": "map.gif"}, "unknown file ending '.gif'; use .html, .png or .kmz"),
        ({"out": "map.kmz"}, "no projection"),
        ({"out": "map.png", "fire": ["fire-00-low", "fire-00-high"]}, "shows one fire"),
        (lambda fires: fires.isel(snapshot=slice(0, 0)), "no fire to draw"),
        (lambda fires: fires.drop_vars(["smoke", "time_since_ignition"]), "no field on y and x"),
        (lambda fires: fires.drop_vars(["x", "y"]), "no coordinate y"),
        (lambda fires: [fires, fires, fires], "3 sources"),
        (lambda fires: [fires, fires.assign_coords(hours=fires.hours + 0.5)], "no fire and hour"),
        (lambda fires: [fires, fires.assign_coords(x=fires.x + 1.0)], "different grids"),
        (lambda fires: "none.zarr", "does not exist"),
    ],
)
def test_wrong_requests_and_sources_are_refused(fires, tmp_path, options, message):
    source, options = (options(fires), {}) if callable(options) else (fires, dict(options))
    out = tmp_path / options.pop("out", "map.html")
    with pytest.raises(PlumecastError, match=message):
        pc.draw_map(source, out, **options)
    assert not out.exists()


def test_loose_quantities_and_hours_work_with_a_warning(fires, tmp_path):
    new = pc.draw_map(fires, tmp_path / "new.png", reading=Reading("dose", hours=[6.0]))
    with pytest.warns(DeprecationWarning, match=r"reading=Reading\("):
        old = pc.draw_map(fires, tmp_path / "old.png", quantity="dose", hours=[6.0])
    assert new.path.read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"
    assert old.path.read_bytes() == new.path.read_bytes()


def test_the_layer_of_the_example_for_contributors_is_on_the_map(fires, monkeypatch):
    """CONTRIBUTING.md adds a layer by one entry of `LAYERS`; the code there is run as it is."""
    text = (REPOSITORY / "CONTRIBUTING.md").read_text(encoding="utf-8")
    example = re.search(r"A map layer is .*?```python\n(.*?)```", text, re.DOTALL)[1]
    monkeypatch.setitem(layers.LAYERS, "smoke_edge", None)  # taken out again after the test
    exec(example, vars(layers).copy())
    content = content_of(fires)
    layer = content.layer("smoke_edge")
    assert (layer.title, layer.kind) == ("Edge of the smoke", "set")
    shown = content.scenes[0].fields["smoke_edge"]
    assert 0 < np.count_nonzero(shown) < np.count_nonzero(content.scenes[0].fields["smoke"])
    assert "smoke_edge" in [item["name"] for item in page_data(content)["layers"]]


def test_a_kmz_has_the_dates_that_a_fire_records(tmp_path):
    made = on_earth(fires=1, checkpoints=1)
    dated = made.assign_coords(ignition_time=("snapshot", np.array(["2026-08-01T18:00:00Z"])))
    pc.draw_map(dated, tmp_path / "map.kmz")
    text = ElementTree.tostring(kml_of(tmp_path / "map.kmz")[0], encoding="unicode")
    assert "2026-08-02T00:00:00Z" in text
    assert "nominal" not in text
