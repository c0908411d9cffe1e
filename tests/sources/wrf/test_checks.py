"""Each quality check on a case that triggers it and one that does not."""

from __future__ import annotations

from dataclasses import replace

import netCDF4
import numpy as np
import pytest

from plumecast.base.errors import PlumecastError
from plumecast.base.integrity import check_complete
from plumecast.sources.wrf import checks, read_wrf, read_wrf_fires
from plumecast.sources.wrf.checks import FrameSummary
from support.wrf_files import NX, NY, NZ, Circle, plume, write_run

HOUR = 3600.0
CLEAN = [
    FrameSummary(HOUR * k, 10 * k, 0, 0, smoke_mass=5.0 * k, peak=3.0 * k, edge_share=0.0)
    for k in range(6)
]


def changed(number: int, **values: float) -> list[FrameSummary]:
    """CLEAN with one frame altered."""
    return [replace(frame, **values) if k == number else frame for k, frame in enumerate(CLEAN)]


def test_a_clean_fire_has_no_findings():
    assert checks.check_fire(CLEAN, floor=1e-3) == ()
    assert checks.check_fire(CLEAN, floor=1e-3, version="4.6.1") == ()
    assert checks.check_fire(CLEAN[:1], floor=1e-3) == ()


def test_arrival_that_is_not_monotone():
    assert checks.non_monotone_arrival(CLEAN) == []
    (lost,) = checks.non_monotone_arrival(changed(3, lost_cells=7))
    assert str(lost) == "non-monotone arrival: 7 burned cells become unburned, first at 3 h"
    (moved,) = checks.non_monotone_arrival(changed(2, moved_cells=4))
    assert "4 burned cells change their arrival time" in moved.message


def test_smoke_before_fire():
    assert checks.smoke_before_fire(changed(0, peak=1e-4), floor=1e-3) == []
    (found,) = checks.smoke_before_fire(changed(0, peak=0.5), floor=1e-3)
    assert found.message == "0.5 µg m⁻³ at 0 h, no cell burned yet"


def test_burned_area_grows_while_smoke_mass_does_not():
    assert checks.smoke_not_following_fire(CLEAN) == []
    stuck = [replace(frame, smoke_mass=5.0) for frame in CLEAN]
    (found,) = checks.smoke_not_following_fire(stuck)
    assert found.message.startswith("burned area grows 5.0-fold, smoke mass 1.00-fold")
    none = [replace(frame, smoke_mass=0.0) for frame in CLEAN]
    (found,) = checks.smoke_not_following_fire(none)
    assert found.message == "50 fire cells burn without any smoke"


def test_smoke_that_has_left_the_domain_is_not_checked():
    gone = [replace(f, smoke_mass=5.0, edge_share=0.3 if f.seconds >= 2 * HOUR else 0.0)
            for f in CLEAN]  # fmt: skip
    assert checks.smoke_not_following_fire(gone) == []
    assert checks.smoke_not_following_fire(gone, version="4.5.2") == []
    (found,) = checks.smoke_not_following_fire(gone, version="4.6.1")
    assert "WRF 4.6.1" in found.message


@pytest.mark.parametrize(
    ("title", "version", "defective"),
    [(" OUTPUT FROM WRF V4.3.3 MODEL", "4.3.3", False), ("WRF V4.6", "4.6", True),
     ("WRF V4.7.1 MODEL", "4.7.1", True), ("WRF V4.8.0", "4.8.0", False), ("WRF", None, False)],
)  # fmt: skip
def test_version_of_the_title(title, version, defective):
    assert checks.wrf_version(title) == version
    assert checks._emits_from_one_column(version) is defective


def test_plume_at_the_boundary():
    assert checks.plume_at_boundary(changed(4, edge_share=0.005), floor=1e-3) == []
    assert checks.plume_at_boundary(changed(4, edge_share=0.5, peak=1e-4), floor=1e-3) == []
    (found,) = checks.plume_at_boundary(changed(4, edge_share=0.25), floor=1e-3)
    assert found.message == "from 4 h on, up to 25% of the peak in the boundary columns"


def test_edge_share():
    field = np.zeros((4, 5))
    assert checks.edge_share(field) == 0
    field[2, 2] = 8.0
    assert checks.edge_share(field) == 0
    for corner in ((0, 2), (3, 2), (1, 0), (1, 4)):
        side = field.copy()
        side[corner] = 2.0
        assert checks.edge_share(side) == 0.25


def test_missing_frames():
    assert checks.missing_frames([0, HOUR, 2 * HOUR]) == []
    assert checks.missing_frames([0, HOUR + 5, 2 * HOUR + 9]) == []
    (found,) = checks.missing_frames([0, HOUR, 2 * HOUR, 5 * HOUR, 6 * HOUR])
    assert found.message.startswith("2 at a step of 1 h, first after 2 h")
    (found,) = checks.missing_frames([0, 12 * HOUR], step=6 * HOUR)
    assert found.message.startswith("1 at a step of 6 h")


def test_uneven_time_steps():
    assert checks.uneven_steps([0, HOUR, 2 * HOUR, 5 * HOUR]) == []
    assert checks.uneven_steps([0, HOUR + 20, 2 * HOUR + 15]) == []
    (found,) = checks.uneven_steps([0, HOUR, 2 * HOUR, 3.5 * HOUR])
    assert found.message == "1 of 3 differ from 1 h, e.g. 1.5 h"


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


@pytest.mark.parametrize("content", [b"", b"CDF", b"CDF\3" + bytes(9), b"<html>" * 9])
def test_a_file_that_is_not_netcdf_is_refused(tmp_path, content):
    path = tmp_path / "file.nc"
    path.write_bytes(content)
    with pytest.raises(PlumecastError, match=r"file\.nc: not a NetCDF file"):
        check_complete(path, set())


def test_a_damaged_header_is_refused(tmp_path):
    path = tmp_path / "file.nc"
    path.write_bytes(b"CDF\1" + bytes(4) + b"\xff" * 40)
    with pytest.raises(PlumecastError, match=r"file\.nc: truncated inside its header"):
        check_complete(path, set())


# -- the checks on files


def quality_of(run) -> str:
    return read_wrf(run).attrs["quality"]


def test_a_clean_run_passes(tmp_path):
    (result,) = read_wrf_fires([write_run(tmp_path / "fire", range(7))])
    assert result.quality == ()
    assert quality_of(tmp_path / "fire") == "passed"


def test_faults_are_found_in_files(tmp_path):
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

    late = Circle(ignition=3.5 * HOUR)

    def puff(seconds):
        return plume(max(seconds - late.ignition, 0.0)) + 1e-4 * plume(HOUR)

    cases = {
        "become unburned": {"hours": range(7), "edit": heal},
        "change their arrival time": {"hours": range(7), "edit": shift},
        "smoke does not follow fire": {"hours": range(7), "smoke": constant},
        "plume at boundary": {"hours": range(7), "smoke": everywhere},
        "missing frames": {"hours": [0, 1, 2, 5, 6]},
        "uneven time steps": {"hours": [0, 1, 2, 3.3, 4.3]},
        "smoke before fire": {"hours": range(7), "fire": late, "smoke": puff},
    }
    for number, (message, options) in enumerate(cases.items()):
        found = quality_of(write_run(tmp_path / str(number), options.pop("hours"), **options))
        assert message in found
        assert found.count(": ") == 1, found  # no other finding
