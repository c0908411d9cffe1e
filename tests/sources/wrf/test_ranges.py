"""Every variable that is read must be written and plausible, in every frame."""

from __future__ import annotations

import netCDF4
import numpy as np
import pytest
import xarray as xr

from plumecast.base.errors import PlumecastError
from plumecast.base.integrity import read_findings
from plumecast.sources.wrf import read_wrf
from plumecast.sources.wrf.integrity import RANGES, check_values
from support.wrf_files import FILE, NX, NY, Fields, airy, blowing, read_run, write_run, write_wrfout

READ = ("LFN", "TIGN_G", "fire_smoke", "P", "PB", "T", "PH", "PHB", "U10", "V10")


def spoil(name: str, value: float, part: object = ...):
    """An `edit` that sets values of one variable, in the frame at 2 h only."""

    def edit(fields: Fields, seconds: float) -> None:
        blowing()(fields, seconds)
        if seconds == 7200.0:
            fields[name][part] = value

    return edit


FILL = netCDF4.default_fillvals["f4"]


@pytest.mark.parametrize(
    ("name", "value"),
    [*((name, FILL) for name in READ), *(("T", value) for value in (np.nan, -np.inf, 1e20))],
)
def test_one_variable_that_was_not_written_in_one_frame_is_named(tmp_path, name, value):
    run = write_run(tmp_path / "fire", range(4), edit=spoil(name, value))
    with pytest.raises(PlumecastError) as info:
        read_wrf(run)
    text = str(info.value)
    assert text.startswith(f"{run / FILE}: frame 2: ")
    assert f"values of {name} are unwritten, NaN or implausible, such as {value:.6g}" in text


@pytest.mark.parametrize("names", [("PH", "PHB"), ("P", "PB", "T")])
def test_fill_values_that_cancel_in_the_column_are_refused(tmp_path, names):
    """One unwritten column would give a finite smoke."""

    def edit(fields: Fields, seconds: float) -> None:
        for name in names:
            fields[name][:, 2, 3] = FILL

    with pytest.raises(PlumecastError, match=r"frame 0: \d of \d+ values of \w+ are unwritten"):
        read_run(tmp_path, range(2), edit=edit)


def test_a_single_unburned_arrival_time_is_not_read(tmp_path):
    """TIGN_G is used where the fire burns; elsewhere it is the clock and says nothing."""
    plain = read_run(tmp_path / "plain", range(3))
    other = read_run(tmp_path / "other", range(3), edit=spoil("TIGN_G", 1e20, (0, 0)))
    np.testing.assert_array_equal(other.time_since_ignition, plain.time_since_ignition)


def test_a_cell_that_burns_cannot_be_lit_long_after_the_frame(tmp_path):
    def late(fields: Fields, seconds: float) -> None:
        fields["TIGN_G"][fields["LFN"] < 0] = seconds + 3600.0

    with pytest.raises(PlumecastError, match=r"frame 1: .* TIGN_G .* 7200; expected -60 to"):
        read_run(tmp_path, range(3), edit=late)


@pytest.mark.parametrize(("names", "change", "message"), [
    (("P", "PB"), lambda field: 0.01 * field, "layers have mean temperatures of"),  # hPa
    (("PH", "PHB"), lambda field: field / 9.81, "the pressure falls 10"),  # m
    (("PHB",), lambda field: field / 9.81, "the pressure falls"),
    (("PH", "PHB"), lambda field: -0.1 * field, "layers are -"),
    (("T",), lambda field: 75.0 * field, "layers have mean temperatures of"),
    (("P", "PB", "T"), lambda field: field[::-1].copy(), "the mean pressure does not decrease"),
])  # fmt: skip
def test_other_units_and_levels_from_the_top_are_noticed(tmp_path, names, change, message):
    def edit(fields: Fields, seconds: float) -> None:
        for name in names:
            fields[name] = change(fields[name])

    with pytest.raises(PlumecastError, match=f"frame 0: {message}.*; check "):
        read_run(tmp_path, range(2), edit=edit)


@pytest.mark.parametrize("name", ["fire_smoke", "LFN", "T"])
def test_the_missing_value_of_a_variable_is_refused(tmp_path, name):
    path = write_wrfout(tmp_path / "fire" / FILE, [0.0, 3600.0])
    with netCDF4.Dataset(path, "a") as file:
        file[name].missing_value = np.float32(-99.0)
        file[name][1, ..., 2, 3] = -99.0
    with pytest.raises(PlumecastError, match=rf"frame 1: {name} has the value -99, which stands"):
        read_wrf(path)


def test_a_declared_missing_value_that_does_not_occur_changes_nothing(tmp_path):
    path = write_wrfout(tmp_path / "fire" / FILE, [0.0, 3600.0])
    plain = read_wrf(path)
    with netCDF4.Dataset(path, "a") as file:
        file["fire_smoke"].missing_value = np.float32(-99.0)
        file["T"].missing_value = np.float32(np.nan)
        file["LFN"].missing_value = np.float32(0.0)
    assert read_wrf(path).identical(plain)


REAL = {"TRUELAT1": 36.0, "TRUELAT2": 39.0, "STAND_LON": -106.0, "MOAD_CEN_LAT": 37.5,
        "MAP_PROJ": np.int32(1)}  # fmt: skip


@pytest.mark.parametrize(("attributes", "lat", "message"), [
    *(({"DX": value}, 40.0, "(no attribute|attributes?) .*DX")
      for value in (0.0, -3000.0, np.nan, 1e30, "wide", None)),
    ({"DY": np.inf}, 40.0, "(no attribute|attributes?) .*DY"),
    *(({}, value, "1 of 48 values of XLAT are unwritten") for value in (np.nan, 91.0)),
    ({"STAND_LON": None}, 40.0, "no attribute STAND_LON"),
    ({"TRUELAT2": np.array([1.0, 2.0])}, 40.0, "attribute TRUELAT2 is .*, not one number"),
    ({"TRUELAT1": "north"}, 40.0, "attribute TRUELAT1 is 'north', not a number"),
    ({"TRUELAT1": 90.0, "TRUELAT2": 90.0, "MOAD_CEN_LAT": np.nan}, 40.0, "MOAD_CEN_LAT is .*nan"),
    ({"MAP_PROJ": "Lambert"}, 40.0, "attribute MAP_PROJ is 'Lambert', not a number"),
])  # fmt: skip
def test_a_place_that_is_not_stated_in_numbers_is_refused(tmp_path, attributes, lat, message):
    places = np.full((NY, NX), 40.0), np.full((NY, NX), -100.0)
    places[0][1, 2] = lat
    with pytest.raises(PlumecastError, match=rf"{FILE}: .*{message}|{FILE}: {message}"):
        read_run(tmp_path, [0, 1], attributes={**REAL, **attributes}, places=places)


def test_a_field_that_passes_the_missing_value_is_no_missing_value():
    """-9999 alone marks a missing value; among values near it, it is one of them."""
    smooth = np.linspace(-10_500.0, -9_000.0, 1501, dtype=np.float32)
    assert (smooth == -9999.0).any()
    assert check_values(smooth, "P", RANGES["P"], "frame") == (-10_500.0, -9_000.0)
    for rest in (np.zeros(5), np.full(5, -12_000.0)):
        with pytest.raises(PlumecastError, match="1 of 6 values of P"):
            check_values(np.append(rest, -9999.0), "P", RANGES["P"], "frame")


def relabelled(run, labels, factor=1.0):
    """The run with these labels, and the values of the variables multiplied by a factor."""
    with netCDF4.Dataset(run / FILE, "a") as file:
        for name, label in labels.items():
            file[name].units = label
            file[name][:] *= factor
    return run


WINDS, PRESSURES = ("U10", "V10", "U", "V"), ("P", "PB")


@pytest.mark.parametrize(("names", "label", "factor"), [
    (WINDS, "knots", 1.9438445), (WINDS, "km h-1", 3.6), (WINDS, "mph", 2.2369363),
    (WINDS, "cm s-1", 100.0), (("PBLH",), "km", 1e-3), (("PBLH",), "ft", 1 / 0.3048),
    (("TIGN_G",), "min", 1 / 60), (("TIGN_G",), "h", 1 / 3600), (PRESSURES, "hPa", 0.01),
    (PRESSURES, "kPa", 1e-3), (("T",), "K", 1.0), (("PH", "PHB"), "m2/s2", 1.0),
    (("LFN",), "1", 1.0), (("FGIP",), "-", 1.0), (("FGIP",), "kg m^-2", 1.0),
])  # fmt: skip
def test_variables_in_other_units_are_converted(tmp_path, names, label, factor):
    """Labels of WRF's own units, as WRF writes them, change nothing."""
    plain = read_run(tmp_path / "plain", range(4), edit=airy(fuel=1.5))
    run = write_run(tmp_path / "other", range(4), edit=airy(fuel=1.5))
    other = read_wrf(relabelled(run, dict.fromkeys(names, label), factor), fire_id="f")
    xr.testing.assert_allclose(other, plain, rtol=1e-5)


@pytest.mark.parametrize(("name", "label", "message"), [
    ("U10", "furlongs/day", "U10 is labelled 'furlongs/day', expected m/s, km/h, knots, mph, ft/s"),
    ("PBLH", "K", "PBLH is labelled 'K', expected m, km, ft or mi"),
    ("TIGN_G", "m s-1", "TIGN_G is labelled 'm s-1', expected h, min, s or d"),
    ("P", "mmHg", "P is labelled 'mmHg', expected Pa, hPa or kPa"),
    ("T", "degC", "T is labelled 'degC', expected K; .* ncatted -a units,T,o,c,'K'"),
    ("PH", "m", "PH is labelled 'm', expected m2 s-2"),
    ("fire_smoke", "ug/kg", "fire_smoke is labelled 'ug/kg', not g/kg; state smoke_unit"),
])  # fmt: skip
def test_a_label_of_another_unit_is_refused(tmp_path, name, label, message):
    run = write_run(tmp_path / "fire", range(3), edit=airy())
    with pytest.raises(PlumecastError, match=message.replace("ncatted", r"\(ncatted")) as info:
        read_wrf(relabelled(run, {name: label}))
    assert str(run / FILE) in str(info.value)


def test_a_later_file_with_another_label_of_smoke_is_refused(tmp_path):
    write_wrfout(tmp_path / "wrfout_d01_2020-08-01_12:00:00", [0.0])
    for hour in (1, 2):
        path = tmp_path / f"wrfout_d01_2020-08-01_{12 + hour}:00:00"
        write_wrfout(path, [3600.0 * hour], smoke_units="ug/kg" if hour == 2 else "g/kg")
    with pytest.raises(PlumecastError, match="_14:00:00: fire_smoke is labelled 'ug/kg', but"):
        read_wrf(tmp_path)


@pytest.mark.parametrize("constant", [0.0, 900.0])
def test_a_clock_that_stands_still_is_replaced_by_the_level_set(tmp_path, constant):
    def stop(fields: Fields, seconds: float) -> None:
        fields["TIGN_G"][:] = constant

    stopped = read_run(tmp_path / "stopped", range(4), edit=stop)
    without = read_run(tmp_path / "without", range(4), drop=["TIGN_G"])
    np.testing.assert_array_equal(stopped.time_since_ignition, without.time_since_ignition)
    checks = [finding.check for finding in read_findings(stopped.quality)]
    assert checks[:2] == ["constant TIGN_G", "no TIGN_G"]


def test_temperatures_that_were_not_written_are_refused(tmp_path):
    def still(fields: Fields, seconds: float) -> None:
        fields["T"][:] = 0.0

    with pytest.raises(PlumecastError, match="T is 0 in all cells although a fire burns"):
        read_run(tmp_path, range(3), edit=still)


def test_a_projection_without_a_plane_keeps_its_latitudes_and_is_noted(tmp_path):
    places = np.mgrid[40.0:40.06:0.01, -100.0:-99.92:0.01][:, :NY, :NX]
    turned = read_run(
        tmp_path, range(3), attributes={"MAP_PROJ": np.int32(6)}, places=tuple(places)
    )
    assert "crs" not in turned.variables
    assert float(turned.x[0]) == 500.0
    np.testing.assert_allclose(turned.lat, places[0], rtol=1e-6)
    assert "no map plane" in [finding.check for finding in read_findings(turned.quality)]
