"""Each quality check on a case that triggers it and one that does not; complete files."""

from __future__ import annotations

from dataclasses import replace

import netCDF4
import numpy as np
import pytest

from plumecast.base.errors import PlumecastError
from plumecast.base.integrity import check_complete
from plumecast.sources.wrf import checks, read_wrf
from plumecast.sources.wrf.checks import FrameSummary, check_fire
from support.wrf_files import NX, NY, NZ, Circle, plume, write_run

HOUR = 3600.0
CLEAN = [
    FrameSummary(HOUR * k, 10 * k, 0, 0, smoke_mass=5.0 * k, peak=3.0 * k, edge_share=0.0)
    for k in range(6)
]
GONE = [replace(f, smoke_mass=5.0, edge_share=0.3 * (f.seconds >= 2 * HOUR)) for f in CLEAN]
"""Smoke that leaves the domain after two hours."""


def changed(number: int | None = None, **values: float) -> list[FrameSummary]:
    """CLEAN with one frame altered, or all."""
    return [replace(f, **values) if number in (None, k) else f for k, f in enumerate(CLEAN)]


def timed(*hours: float) -> list[FrameSummary]:
    """A clean fire with frames at these hours."""
    return [replace(CLEAN[min(k, 5)], seconds=HOUR * hour) for k, hour in enumerate(hours)]


BOUNDARY = "plume at boundary: from 2 h on, up to 30% of the peak in the boundary columns"


@pytest.mark.parametrize(
    ("frames", "options", "findings"),
    [
        (CLEAN, {}, []),
        (CLEAN, {"version": "4.6.1"}, []),
        (CLEAN[:1], {}, []),
        (changed(3, lost_cells=7), {}, ["arrival: 7 burned cells become unburned, first at 3 h"]),
        (changed(2, moved_cells=4), {}, ["4 burned cells change their arrival time"]),
        (changed(0, peak=1e-4), {}, []),
        (changed(0, peak=0.5), {}, ["smoke before fire: 0.5 µg m⁻³ at 0 h, no cell burned yet"]),
        (changed(smoke_mass=5.0), {}, ["burned area grows 5.0-fold, smoke mass 1.00-fold"]),
        (changed(smoke_mass=0.0), {}, ["50 fire cells burn without any smoke"]),
        (GONE, {"version": "4.5.2"}, [BOUNDARY]),
        (GONE, {"version": "4.6.1"}, ["not checked, but WRF 4.6.1 emits", BOUNDARY]),
        (changed(4, edge_share=0.005), {}, []),
        (changed(4, edge_share=0.5, peak=1e-4), {}, []),
        (changed(4, edge_share=0.25), {}, ["boundary: from 4 h on, up to 25% of the peak"]),
        (timed(0, 1.001, 2.002), {}, []),
        (timed(0, 1, 2, 5, 6), {}, ["missing frames: 2 at a step of 1 h, first after 2 h"]),
        (timed(0, 12), {"step": 6 * HOUR}, ["missing frames: 1 at a step of 6 h"]),
        (timed(0, 1, 2, 3.5), {}, ["missing", "uneven time steps: 1 of 3 differ from 1 h"]),
        (changed(2, lowest=-5.0), {}, ["negative smoke: values from -5 to 0"]),
        (CLEAN, {"has_arrival": False}, ["no TIGN_G: arrival times are estimated from LFN"]),
    ],
)  # fmt: skip
def test_findings_of_frames(frames, options, findings):
    result = [str(finding) for finding in check_fire(frames, floor=1e-3, **options)]
    assert len(result) == len(findings), result
    for text, part in zip(result, findings, strict=True):
        assert part in text


@pytest.mark.parametrize(
    ("title", "version", "defective"),
    [(" OUTPUT FROM WRF V4.3.3 MODEL", "4.3.3", False), ("WRF V4.6", "4.6", True),
     ("WRF V4.7.1 MODEL", "4.7.1", True), ("WRF V4.8.0", "4.8.0", False), ("WRF", None, False)],
)  # fmt: skip
def test_version_of_the_title(title, version, defective):
    assert checks.wrf_version(title) == version
    assert bool(check_fire(CLEAN[:2], floor=1e-3, version=version)) is defective


def test_edge_share():
    field = np.zeros((4, 5))
    assert checks.edge_share(field) == 0
    field[2, 2] = 8.0
    assert checks.edge_share(field) == 0
    for corner in ((0, 2), (3, 2), (1, 0), (1, 4)):
        side = field.copy()
        side[corner] = 2.0
        assert checks.edge_share(side) == 0.25


def heal(fields, seconds):
    if seconds == 4 * HOUR:
        fields["LFN"][8, 12] = 1.0


def shift(fields, seconds):
    if seconds == 4 * HOUR:
        fields["TIGN_G"] = fields["TIGN_G"] - 300.0


def everywhere(seconds):
    return plume(seconds) + 1e-4 * seconds / HOUR * np.ones((NZ, NY, NX))


def constant(seconds):
    return plume(HOUR) * (seconds > 0)


LATE = Circle(ignition=3.5 * HOUR)


def puff(seconds):
    return plume(max(seconds - LATE.ignition, 0.0)) + 1e-4 * plume(HOUR)


@pytest.mark.parametrize(
    ("finding", "options"),
    [
        ("passed", {}),
        ("become unburned", {"edit": heal}),
        ("change their arrival time", {"edit": shift}),
        ("smoke does not follow fire", {"smoke": constant}),
        ("plume at boundary", {"smoke": everywhere}),
        ("missing frames", {"hours": [0, 1, 2, 5, 6]}),
        ("uneven time steps", {"hours": [0, 1, 2, 3.3, 4.3]}),
        ("smoke before fire", {"fire": LATE, "smoke": puff}),
    ],
)
def test_faults_are_found_in_files(tmp_path, finding, options):
    run = write_run(tmp_path / "fire", **{"hours": range(7), **options})
    quality = read_wrf(run).attrs["quality"]
    assert finding in quality
    assert quality.count(": ") == (finding != "passed"), quality


# -- complete files


@pytest.mark.parametrize("form", ["NETCDF3_CLASSIC", "NETCDF3_64BIT_OFFSET", "NETCDF3_64BIT_DATA"])
@pytest.mark.parametrize("records", [0, 1, 3])
def test_a_classic_file_is_as_long_as_its_header_says(tmp_path, form, records):
    path = tmp_path / "file.nc"
    with netCDF4.Dataset(path, "w", format=form) as file:
        for name, size in (("t", None), ("x", 5), ("c", 3)):
            file.createDimension(name, size)
        file.title = "abcde"
        file.createVariable("fixed", "f8", ("x",))[:] = 1.0
        for name, dims in (("field", ("t", "x")), ("other", ("t", "c"))):
            variable = file.createVariable(name, "f4", dims)
            variable.units = "m"
            if records:
                variable[:records] = np.ones((records, variable.shape[1]))
    check_complete(path, set())
    path.write_bytes(path.read_bytes()[:-4])
    with pytest.raises(PlumecastError, match=r"file\.nc: truncated, 4 bytes are missing"):
        check_complete(path, set())


@pytest.mark.parametrize(
    ("content", "message"),
    [(content, "not a NetCDF file") for content in (b"", b"CDF", b"CDF\3" + bytes(9), b"<html>")]
    + [(b"CDF\1" + bytes(4) + b"\xff" * 40, "truncated inside its header")],
)
def test_a_file_that_is_not_netcdf_is_refused(tmp_path, content, message):
    path = tmp_path / "file.nc"
    path.write_bytes(content)
    with pytest.raises(PlumecastError, match=rf"file\.nc: {message}"):
        check_complete(path, set())
