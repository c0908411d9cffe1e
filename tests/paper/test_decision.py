"""The page for planners: its numbers, what it leaves out, what it refuses, and how it looks."""

from __future__ import annotations

import dataclasses
import json
import re
import shutil

import pytest
import xarray as xr
from markupsafe import escape
from matplotlib.figure import Figure

import plumecast as pc
from plumecast.app.maps.figure import draw_ground, name_places
from plumecast.app.maps.ground import ground_of
from plumecast.compute.regrid import Grid
from plumecast.impact.comparison import export_maps, write_json
from plumecast.impact.loss_result import write_loss
from plumecast.impact.solar_loss import Unrecorded
from plumecast.paper.figures import styled
from plumecast.report.answers import (
    COMMANDS,
    DIFFERENCES,
    ENERGY,
    PLACES,
    between,
    chance,
    number,
    read_answers,
    share,
    shares_between,
)
from plumecast.report.planner import write_decision
from plumecast.report.tables import difference_tables, ordinal, place_table, settled, smoke_pictures
from plumecast.scores.reading import Reading
from plumecast.workflows.export import export_statistics
from plumecast.workflows.statistics.point_table import write_points
from plumecast.workflows.statistics.request import Statistics
from support.browser import shown_alone
from support.plants import NOON, smoky, write_plants

NASTY = 'Elm <b>&amp; "Co"</b> $x$'
SECTIONS = ("maps", "places", "differences", "energy", "trust", "assumptions")
HOSTILE = "</code><script>alert(1)</script>"
ASKED = Reading(thresholds=(35.0,)), Statistics((0.05, 0.5, 0.95), final=True)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A surrogate and its fires, a table of places, and a folder with all answers."""
    pytest.importorskip("pvlib")
    base = tmp_path_factory.mktemp("decision")
    folder = base / "answers"
    folder.mkdir()
    fires = smoky(fires=12)
    model = pc.fit_surrogate(fires, "paper-linear")
    towns = base / "towns.csv"
    name = NASTY.replace('"', '""')
    towns.write_text(f'name,x,y,population\nAsh,9000,9000,400\n"{name}",15000,12000,\n')
    export_statistics(pc.ensemble_statistics(model, fires, *ASKED), folder / "maps.nc")
    write_points(pc.evaluate_points(model, fires, towns, *ASKED), folder / "towns.json")
    scenarios = {name: pc.data.select_drought(fires, name) for name in ("low", "high")}
    compared = pc.compare_scenarios(scenarios, ASKED[0], model=model, places=towns)
    write_json(compared, folder / "differences.json")
    export_maps(compared.maps, folder / "differences.nc")
    loss = pc.solar_loss(
        fires, write_plants(base / "plants.csv"), ignition_time=NOON, surrogate=model,
        unrecorded=Unrecorded(latitude=39),
    )  # fmt: skip
    write_loss(loss, folder / "energy.nc")
    return folder, model, fires, towns


@pytest.fixture(scope="module")
def answers(made):
    return read_answers(made[0])


@pytest.fixture(scope="module")
def page(made, tmp_path_factory):
    written = write_decision(made[0], tmp_path_factory.mktemp("page") / "decision.html")
    assert (written.others, written.missing) == ((), ())
    return written.path


@pytest.fixture(scope="module")
def text(page) -> str:
    return page.read_text(encoding="utf-8")


@pytest.fixture
def copied(made, tmp_path):
    """A copy of the folder of answers that a test may change."""
    return shutil.copytree(made[0], tmp_path / "answers")


@pytest.fixture
def alone(made, tmp_path):
    """A folder with the table of places alone."""
    folder = tmp_path / "alone"
    folder.mkdir()
    shutil.copy(made[0] / "towns.json", folder)
    return folder


def test_the_page_needs_nothing_but_itself(text):
    assert re.findall(r'(?:src|href)="(?!data:|#)[^"]*"', text) == []
    assert "http" not in text
    assert text.lstrip().startswith("<!DOCTYPE html>")


def test_the_map_comes_first_and_the_assumptions_last(text):
    places = [text.index(f'<section id="{name}"') for name in SECTIONS]
    assert places == sorted(places)


def test_places_have_their_numbers_intervals_and_units(made, answers, text):
    rows = json.loads((made[0] / "towns.json").read_text())["places_table"]
    for row in rows:
        assert f"<span>{number(row['mean'])}<small>" in text
        assert between(row["mean_lower"], row["mean_upper"]) in text
        assert shares_between(row["above_35_lower"], row["above_35_upper"], 12) in text
    table = place_table(answers.get(PLACES))
    assert table.titles[2] == "chance of more than 35 µg\N{NO-BREAK SPACE}m⁻³"
    ordered = sorted((r for r in rows if r["name"] != "all people"), key=lambda r: -r["mean"])
    assert [cells[0].text for cells in table.rows] == [
        *(row["name"] for row in ordered), "all people",
    ]  # fmt: skip


def test_differences_and_energy_are_those_of_the_files(answers, text):
    for row in answers.get(DIFFERENCES).rows:
        assert f"<span>{number(row['difference'], '+')}" in text
        assert settled(row) in text
    for note in answers.get(DIFFERENCES).notes:
        assert str(escape(note[1:])) in text
    whole = answers.get(ENERGY).rows[-1]
    assert f"all plants together lose {number(whole['lost_mwh'])} MWh" in text


def test_what_was_assumed_names_model_data_and_optics(answers, text):
    table = text[text.index('id="assumptions"') :]
    for shown in ("6 h", "4.5 m² g⁻¹, range 3.3 to 7.4", "0.93, range 0.88 to 0.97", "15 km",
                  "paper-linear", answers.get(ENERGY).attrs["model_id"],
                  "growing discs"):  # fmt: skip
        assert shown in table


def test_all_maps_have_one_colour_scale(answers):
    answer = answers.get("maps")
    pictures = smoke_pictures(answer, None)
    assert [picture.caption.split(".")[0] for picture in pictures[:-1]] == [
        "5th percentile", "50th percentile", "95th percentile",
    ]  # fmt: skip
    # With a scale of its own, a map would not change when another one has ten times the smoke.
    most = answer.fields.smoke_quantile[-1]
    fields = answer.fields.copy()
    fields["smoke_quantile"] = xr.concat([most, most, 10.0 * most], fields["quantile"])
    changed = smoke_pictures(dataclasses.replace(answer, fields=fields), None)
    assert changed[0].source == changed[1].source != pictures[2].source


def test_missing_answers_are_named_with_their_commands(alone, run):
    (alone / "more.json").write_text("{}")
    result = run("report", alone, "--planner", "-o", alone / "page.html")
    assert result.code == 0
    assert "no results of ensemble, compare or impact: more.json" in result.err
    text = (alone / "page.html").read_text(encoding="utf-8")
    for kind, command in COMMANDS.items():
        assert (str(escape(command.format(folder=alone))) in text) is (kind != PLACES)
    assert 'id="energy"' not in text


def test_netcdf_and_json_of_the_places_make_the_same_table(made, alone):
    _, model, fires, towns = made
    before = place_table(read_answers(alone).get(PLACES))
    write_points(pc.evaluate_points(model, fires, towns, *ASKED), alone / "towns.nc")
    answer = read_answers(alone).get(PLACES)
    assert answer.path.suffix == ".nc"
    assert place_table(answer) == before


def test_answers_of_another_surrogate_are_refused(made, copied, refused):
    _, _, fires, towns = made
    other = pc.fit_surrogate(fires.isel(snapshot=slice(0, 32)), "paper-linear")
    (copied / "towns.json").unlink()
    table = pc.evaluate_points(other, fires, towns, statistics=Statistics(final=True))
    write_points(table, copied / "towns.json")
    said = refused("report", copied, "--planner", "-o", copied / "page.html")
    assert "towns.json (paper-linear" in said
    assert "different surrogates" in said


def test_maps_on_another_grid_are_refused(copied, refused):
    moved = xr.load_dataset(copied / "differences.nc")
    moved.assign_coords(x=moved.x + 1500.0).to_netcdf(copied / "differences.nc")
    said = refused("report", copied, "--planner", "-o", copied / "page.html")
    assert "maps.nc and differences.nc" in said
    assert "different grids" in said


@pytest.mark.parametrize(
    ("name", "change", "said"),
    [
        ("towns.json", lambda text: text[:100], "towns.json: not a JSON file"),
        ("again.json", None, "two files with places, again.json and towns.json"),
        ("maps.nc", lambda text: "junk", "maps.nc: not a readable NetCDF file"),
        ("differences.json", lambda text: text.replace('"chance"', '"c"'), "not complete"),
        ("differences.json", lambda text: text.replace('"high"', '"dry"'), "compares low, dry"),
        ("towns.json", lambda text: text.replace('"quantity": "mean"', '"quantity": "dose"'),
         "different quantities"),
    ],
)  # fmt: skip
def test_a_damaged_or_doubled_answer_is_named(copied, refused, name, change, said):
    path = copied / name
    if change is None:
        shutil.copy(copied / "towns.json", path)
    else:
        path.write_text(change(path.read_text(encoding="utf-8", errors="replace")))
    assert said in refused("report", copied, "--planner", "-o", copied / "page.html")


def test_a_folder_without_answers_is_refused(refused, tmp_path):
    out = tmp_path / "page.html"
    assert "plumecast ensemble MODEL" in refused("report", tmp_path, "--planner", "-o", out)
    assert "no such folder" in refused("report", tmp_path / "a", "--planner", "-o", out)


@pytest.mark.parametrize(("beats", "times"), [(1, 0), (0, 1)])
def test_a_poor_surrogate_is_told_at_the_top(alone, beats, times):
    path = alone / "towns.json"
    judged = {"model_beats_baselines": beats, "model_verdict": "it does not beat the mean"}
    path.write_text(json.dumps(json.loads(path.read_text(encoding="utf-8")) | judged))
    text = write_decision(alone, alone / "page.html").path.read_text(encoding="utf-8")
    top = text[: text.index("<nav")]
    assert top.count("it does not beat the mean") == top.count('id="warning"') == times


def changed_places(folder, attrs, **columns):
    """The page of a folder whose table of places has other attributes and columns."""
    path = folder / "towns.json"
    content = json.loads(path.read_text(encoding="utf-8")) | attrs
    for place, row in enumerate(content["places_table"]):
        row |= {name: values[place] for name, values in columns.items() if place < len(values)}
    path.write_text(json.dumps(content), encoding="utf-8")
    return write_decision(folder, folder / "page.html").path.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("lower", "upper", "said"),
    [
        ((5.0, 0.0), (9.0, 1.0), "gets the most smoke"),
        ((0.5, 0.0), (9.0, 1.0), "which place gets the most is not settled"),
        ((5.0, 0.0), (9.0, None), "which place gets the most is not settled"),
    ],
)
def test_no_place_gets_the_most_smoke_where_intervals_overlap(alone, lower, upper, said):
    changed = {"mean": (7.0, 0.5), "mean_lower": lower, "mean_upper": upper}
    page = changed_places(alone, {}, **changed)
    assert [text in page for text in ("gets the most smoke", "is not settled")] == [
        text in said for text in ("gets the most smoke", "is not settled")
    ]


def test_corrected_chances_stand_alone(alone):
    quantiles = "% of fires bring less than"
    assert quantiles in changed_places(alone, {})
    page = changed_places(alone, {"calibration_ignitions": 7})
    assert quantiles not in page
    assert "chance of more than 35" in page


def test_one_fire_has_its_error_bar_and_no_chances(copied):
    one = {"ignitions": 1, "fires": 1, "snapshots": 1}
    maps = xr.load_dataset(copied / "maps.nc").assign_attrs(one)
    maps.to_netcdf(copied / "maps.nc")
    bars = {"mean": (20.0, 40.0, 1.0), "mean_lower": (1.0, 36.0, 0.5), "mean_upper": (50.0, 60.0)}
    page = changed_places(copied, one, **bars)
    captions = re.findall(r"<figcaption>(\w+ ?\w*)\.", page)
    assert captions[:3] == ["Lower end", "Prediction", "Upper end"]
    assert "percentile" not in page[: page.index('id="trust"')]
    assert "1 in 1" not in page
    answered = re.findall(r"<span>(yes|no|possible)</span>", page)
    assert answered[:2] == ["yes", "possible"]


def test_the_top_of_the_page_says_what_the_numbers_rest_on(made, copied):
    maps = xr.load_dataset(made[0] / "maps.nc")
    beyond = {"snapshots_beyond_training": 3, "extrapolation": "3 of 12 snapshots burn longer"}
    maps.assign_attrs(beyond, fires_from="simulated, seed 7").to_netcdf(copied / "maps.nc")
    page = write_decision(copied, copied / "page.html").path.read_text(encoding="utf-8")
    top = page[page.index("premises") : page.index("<nav")]
    assert "drawn at random, not observed (simulated, seed 7)" in top
    assert "3 of 12 snapshots burn longer" in top


def test_maps_with_a_projection_have_borders_degrees_and_names():
    grid = Grid(left=-2_100_000.0, bottom=1_900_000.0, dx=3e3, dy=3e3, nx=20, ny=16)
    ground = ground_of(grid, "EPSG:5070")
    assert ground.borders
    assert {"120° W", "38° N"} <= set(ground.graticule)
    with styled():
        ax = Figure().subplots()
        draw_ground(ax, ground)
        name_places(ax, {"Weed": (-2088.3, 1918.7), "Yreka": (-2088.2, 1918.8)})
        shown = {text.get_text(): text for text in ax.texts}
        boxes = [shown[name].get_window_extent() for name in ("Weed", "Yreka")]
    assert not boxes[0].overlaps(boxes[1])


def test_the_page_says_whether_intervals_contain_the_error_of_predictions(text, alone):
    assert "but not the error of the predictions" in text
    path = alone / "towns.json"
    content = json.loads(path.read_text(encoding="utf-8")) | {"calibration_ignitions": 7}
    path.write_text(json.dumps(content))
    after = write_decision(alone, alone / "after.html").path.read_text(encoding="utf-8")
    assert "not the error of the predictions" not in after
    assert "measured on 7 ignitions" in after


def test_no_percent_of_a_mean_that_may_be_zero(answers):
    answer = answers.get(DIFFERENCES)
    unknown = {"relative": 200.2, "relative_lower": None, "relative_upper": None}
    rows = tuple({**row, **unknown} for row in answer.rows)
    tables = difference_tables(dataclasses.replace(answer, rows=rows))
    shown = {(cells[4].text, cells[4].small) for table in tables for cells in table.rows}
    assert shown == {("–", "")}


def test_nothing_of_a_file_is_run_by_the_page(text, copied):
    assert str(escape(NASTY)) in text
    assert NASTY not in text
    path = copied / "differences.json"
    content = json.loads(path.read_text(encoding="utf-8")) | {"notes": [HOSTILE]}
    content["comparison"]["fires_from"] = HOSTILE
    path.write_text(json.dumps(content), encoding="utf-8")
    page = write_decision(copied, copied / "page.html").path.read_text(encoding="utf-8")
    assert "<script" not in page


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({}, "yes: less smoke"),
        ({"difference": 1.0, "lower": 0.5, "upper": 2.0}, "yes: more smoke"),
        ({"rough": True}, "not yet: a few fires decide, add fires"),
        ({"upper": 1.0, "more_ignitions": 12.2}, "no; about 13 more ignitions needed"),
        ({"upper": 1.0, "more_ignitions": None}, "no, and more fires would hardly settle it"),
        ({"difference": 0.0, "lower": None, "upper": None}, "no fire differs"),
        ({"lower": None, "upper": None}, "unknown: too few fires"),
    ],
)
def test_a_difference_is_settled_only_if_its_interval_excludes_zero(changed, said):
    row = {"difference": -1.0, "lower": -2.0, "upper": -0.5, "more_ignitions": 0.0, "rough": False}
    assert settled(row | changed) == said


def test_numbers_are_written_for_people():
    assert [number(v) for v in (0.0, 1.2345, 2098.4, 0.0002, None, float("inf"))] == [
        "0", "1.23", "2,098", "< 0.001", "–", "–",
    ]  # fmt: skip
    assert number(-0.5, "+") == "−0.5"
    assert [chance(p) for p in (1.0, 0.5, 0.0)] == ["> 99.9 %", "50 %", "< 0.1 %"]
    assert between(0.5, None, unit=" MWh") == "0.5 MWh or more"
    assert [share(p, 80) for p in (9.13e-5, 0.0823, 0.5)] == ["< 1 in 80", "8 %", "50 %"]
    assert shares_between(0.0343, 0.1141, 80) == "3 to 12 %"
    assert shares_between(0.0343, None, 12_000) == "3.43 % or more"
    assert [ordinal(v) for v in (1, 2, 3, 5, 11, 92, 97.5)] == [
        "1st", "2nd", "3rd", "5th", "11th", "92nd", "97.5th",
    ]  # fmt: skip


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (400, "dark")])
def test_a_real_browser_shows_the_page(browser, page, width, scheme):
    with shown_alone(browser, page, width, scheme) as shown:
        sizes = shown.evaluate("[...document.images].map(i => i.naturalWidth)")
        paper = shown.evaluate("getComputedStyle(document.body).backgroundColor")
    assert len(sizes) == 4 + 2  # three percentiles, a difference, two legends
    assert min(sizes) > 0
    assert (paper == "rgb(255, 255, 255)") is (scheme == "light")
