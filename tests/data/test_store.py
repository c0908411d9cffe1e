"""Snapshot stores: only whole fires, a single writer, and every format reads back exactly."""

from __future__ import annotations

import pickle
import re
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import netCDF4
import numpy as np
import pytest
import xarray as xr

from plumecast import data
from plumecast.base.errors import PlumecastError
from plumecast.base.names import FIRE
from plumecast.data.schema import validate_snapshots
from plumecast.data.store import append_fire, export_snapshots, open_snapshots, stored_fires
from support.places import shared_data
from support.snapshots import fires_of, make_snapshots, select_fire

WAITS_BEFORE_COMMIT = """
import sys
import icechunk
from plumecast import append_fire, open_snapshots

flush = icechunk.Session.flush

def wait(session, *arguments, **options):
    print("writing", flush=True)
    sys.stdin.readline()
    return flush(session, *arguments, **options)

fire = open_snapshots(sys.argv[2]).load()
icechunk.Session.flush = wait
append_fire(sys.argv[1], fire)
"""


@pytest.fixture
def store(tmp_path, snapshots) -> Path:
    """A store of the first three fires, one commit each."""
    path = tmp_path / "ensemble.zarr"
    for fire in fires_of(snapshots)[:3]:
        append_fire(path, fire)
    return path


def without_version(snapshots: xr.Dataset) -> xr.Dataset:
    attrs = {k: v for k, v in snapshots.attrs.items() if k not in ("data_version", "Conventions")}
    return snapshots.load().drop_attrs(deep=False).assign_attrs(attrs)


def assert_same_snapshots(got: xr.Dataset, expected: xr.Dataset) -> None:
    """Equal in values, types, coordinates and units; the version may differ."""
    xr.testing.assert_identical(without_version(got), without_version(expected))
    for name, item in expected.variables.items():
        kind = item.dtype.kind
        assert got[name].dtype.kind == kind, name
        assert kind == "U" or got[name].dtype == item.dtype, name


def test_importing_the_data_room_loads_no_file_library():
    """Numerics on in-memory data must work, and start quickly, without these libraries."""
    modules = sorted(path.stem for path in Path(data.__file__).parent.glob("[!_]*.py"))
    imports = "\n".join(f"import plumecast.data.{name}" for name in modules)
    heavy = "{'netCDF4', 'zarr', 'icechunk', 'scipy'} & set(sys.modules)"
    script = f"import sys\n{imports}\nprint(sorted({heavy}))"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout == "[]\n"


# Append, resume, version


def test_appending_fire_by_fire_equals_one_whole_write(tmp_path, snapshots):
    """Each append is a new version; what is there is left out, as a run that resumes does."""
    path, versions = tmp_path / "by-fire.zarr", []
    assert stored_fires(path) == frozenset()
    path.mkdir()
    assert stored_fires(path) == frozenset(), "an empty folder holds no fire"
    fires = fires_of(snapshots)
    for count, fire in enumerate(fires, start=1):
        versions.append(append_fire(path, fire))
        assert len(stored_fires(path)) == count
        assert open_snapshots(path).attrs["data_version"] == versions[-1]
    assert len(set(versions)) == len(fires)
    append_fire(tmp_path / "whole.zarr", snapshots)
    by_fire, whole = (open_snapshots(tmp_path / f"{name}.zarr") for name in ("by-fire", "whole"))
    assert_same_snapshots(by_fire, whole)
    assert_same_snapshots(whole, snapshots)


def test_fires_of_other_lengths_and_types_append_exactly(tmp_path):
    """Fires of 5 and 37 snapshots end within the chunks of 16; stored types are float32."""
    short = make_snapshots(fires=1, checkpoints=5, seed=1, droughts=("low",))
    long = make_snapshots(fires=1, checkpoints=37, seed=2, droughts=("high",))
    double = long.smoke.astype(np.float64) / 3.0
    long = long.assign(smoke=double.assign_attrs(long.smoke.attrs)).assign_coords(
        ignition_id=long.ignition_id + "-b", hours=long.hours.astype(np.int32)
    )
    append_fire(tmp_path / "store", short)
    append_fire(tmp_path / "store", long)
    opened = open_snapshots(tmp_path / "store")
    assert opened.smoke.dtype == np.float32
    for name in ("time_since_ignition", "smoke", "hours", "burned_area"):
        expected = np.concatenate([short[name], long[name]]).astype(opened[name].dtype)
        np.testing.assert_array_equal(opened[name], expected)


# Appends that are refused leave the store as it was


def windy(fire: xr.Dataset) -> xr.Dataset:
    return fire.assign_coords(wind_speed=("snapshot", np.ones(4), {"units": "m s-1"}))


def shifted(dim: str) -> Callable[[xr.Dataset], xr.Dataset]:
    return lambda fire: fire.assign_coords({dim: (dim, fire[dim].values + 1500.0, fire[dim].attrs)})


def larger(fire: xr.Dataset) -> xr.Dataset:
    return select_fire(make_snapshots(shape=(8, 11)), "fire-04-low")


def without_axes(change: Callable[[xr.Dataset], xr.Dataset]):
    return lambda fire: change(fire).drop_vars(["x", "y"])


@pytest.mark.parametrize(
    ("stored", "change", "said"),
    [
        (
            None,
            lambda fire: fire.assign_coords(fire_id=("snapshot", ["fire-00-high"] * 4)),
            "fire 'fire-00-high' is already in {store}",
        ),
        (
            None,
            lambda fire: fire.assign(smoke=fire.smoke.where(fire.x > 0.0)),
            "'smoke' holds 32 NaN or infinite values in fire",
        ),
        (None, shifted("y"), "fire 'fire-04-low' is on another grid than {store}: .*('y' differs)"),
        (None, shifted("x"), "fire 'fire-04-low' is on another grid than {store}: .*('x' differs)"),
        (None, larger, "on another grid than {store}: 11 × 8 cells of .*, not 10 × 8 cells"),
        (without_axes(lambda fire: fire), without_axes(larger), "y = 8, x = 11, not y = 8, x = 10"),
        (None, windy, "fire 'fire-04-low' has 'wind_speed', which {store} lacks; drop it"),
        (windy, lambda fire: fire, "'fire-04-low' has no 'wind_speed', which "),
        (
            lambda fire: with_shares(fire, 3),
            lambda fire: with_shares(fire, 16),
            "16 hours .* more than the 3 .*; put it .* or drop",
        ),
    ],
)
def test_a_refused_fire_leaves_the_store_as_it_was(tmp_path, snapshots, stored, change, said):
    store, first = tmp_path / "store", select_fire(snapshots, "fire-00-high")
    append_fire(store, stored(first) if stored else first)
    before = open_snapshots(store).load()
    pattern = re.escape(said.format(store=store)).replace(r"\.\*", ".*")
    with pytest.raises(PlumecastError, match=pattern):
        append_fire(store, change(select_fire(snapshots, "fire-04-low")))
    xr.testing.assert_identical(open_snapshots(store).load(), before)


def test_other_files_are_never_appended_to(tmp_path, snapshots):
    fire = select_fire(snapshots, "fire-00-low")
    text = tmp_path / "notes.txt"
    text.write_text("not a store\n")
    plain = export_snapshots(snapshots, tmp_path / "plain.zarr")
    for path in (text, plain):
        with pytest.raises(PlumecastError, match=f"{path} exists and is not an Icechunk store"):
            append_fire(path, fire)
    assert text.read_text() == "not a store\n"
    assert_same_snapshots(open_snapshots(plain), snapshots)


def test_second_writer_is_refused_while_the_first_writes(store, snapshots, tmp_path):
    before = open_snapshots(store).load()
    mine, theirs = (select_fire(snapshots, f"fire-04-{drought}") for drought in ("low", "high"))
    source = export_snapshots(theirs, tmp_path / "fire.nc")
    command = [sys.executable, "-c", WAITS_BEFORE_COMMIT, str(store), str(source)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as writer:
        assert writer.stdout.readline() == "writing\n"
        with pytest.raises(PlumecastError, match=f"{store} is being written by another process"):
            append_fire(store, mine)
        xr.testing.assert_identical(open_snapshots(store).load(), before)
        writer.communicate("go on\n", timeout=300)
    assert writer.returncode == 0
    append_fire(store, mine)
    assert stored_fires(store) >= {"fire-04-low", "fire-04-high"}


# Plain formats


@pytest.mark.parametrize("ending", ["nc", "zarr"])
def test_exported_snapshots_and_stores_open_exactly_equal(store, tmp_path, snapshots, ending):
    """With geography and covariates; an export never overwrites."""
    lat = (("y", "x"), np.linspace(30.0, 40.0, 80).reshape(8, 10), {"units": "degrees_north"})
    wind = ("snapshot", np.linspace(0.0, 9.0, 48), {"units": "m s-1"})
    placed = snapshots.assign_coords(lat=lat, wind_speed=wind)
    for name, source in (("placed", placed), ("store", open_snapshots(store))):
        path = export_snapshots(source, tmp_path / "new" / f"{name}.{ending}")
        assert_same_snapshots(open_snapshots(path), source)
        with pytest.raises(PlumecastError, match=f"{path} exists; remove it or choose another p"):
            export_snapshots(snapshots.isel(snapshot=slice(0, 4)), path)
        assert_same_snapshots(open_snapshots(path), source)
    with pytest.raises(PlumecastError, match=r"plain.csv: .* use .nc or .zarr"):
        export_snapshots(snapshots, tmp_path / "plain.csv")


@pytest.mark.parametrize("spelling", ["h", "hours", "hr"])
def test_classic_netcdf_and_zarr_version_2_are_readable(tmp_path, snapshots, spelling):
    """Hours that are spelled out are read as numbers."""
    spelled = snapshots.copy(deep=True)
    for name in ("time_since_ignition", "hours"):
        spelled[name].attrs["units"] = spelling
    spelled.to_netcdf(tmp_path / "classic.nc", format="NETCDF3_64BIT")
    spelled.to_netcdf(tmp_path / "new.nc")
    text = {name: snapshots[name].astype(object) for name in ("fire_id", "ignition_id", "drought")}
    spelled.assign_coords(text).to_zarr(tmp_path / "two.zarr", zarr_format=2)
    for name in ("classic.nc", "new.nc", "two.zarr"):
        opened = open_snapshots(tmp_path / name)
        xr.testing.assert_equal(opened.drop_attrs().load(), snapshots.drop_attrs())


def test_a_netcdf_file_is_open_only_while_it_is_read_by_one_thread_or_many(tmp_path, snapshots):
    path = export_snapshots(snapshots, tmp_path / "fires.nc")
    opened = open_snapshots(path)
    # HDF5 refuses to write to a file that the same process holds open for reading.
    with netCDF4.Dataset(path, "a"):
        pass
    before = opened.isel(snapshot=[3, 1]).smoke.values
    np.testing.assert_array_equal(before, snapshots.smoke.values[[3, 1]])
    with netCDF4.Dataset(path, "a"):
        pass
    elsewhere = pickle.loads(pickle.dumps(opened))
    xr.testing.assert_identical(elsewhere.load(), open_snapshots(path).load())
    with ThreadPoolExecutor(4) as pool:  # netCDF crashes where two threads are within it
        sums = list(pool.map(lambda _: float(opened.smoke[7].sum()), range(40)))
    np.testing.assert_allclose(sums, float(snapshots.smoke[7].sum()), rtol=1e-5)


def test_version_of_a_netcdf_file_follows_its_content(tmp_path, snapshots):
    first = export_snapshots(snapshots, tmp_path / "first.nc")
    other = export_snapshots(snapshots.isel(snapshot=slice(1, None)), tmp_path / "other.nc")
    copy = tmp_path / "copy.nc"
    copy.write_bytes(first.read_bytes())
    version = {path: open_snapshots(path).attrs["data_version"] for path in (first, other, copy)}
    assert version[first].startswith("sha256:")
    assert version[first] == version[copy] != version[other]


@pytest.mark.parametrize(("ending", "writer"), [("nc", "to_netcdf"), ("zarr", "to_zarr")])
def test_export_that_fails_leaves_no_file_to_be_taken_for_whole(
    tmp_path, snapshots, monkeypatch, ending, writer
):
    write = getattr(xr.Dataset, writer)

    def fail_at_the_end(*arguments, **options):
        write(*arguments, **options)
        raise OSError("disk full")

    path = tmp_path / f"plain.{ending}"
    with monkeypatch.context() as patch:
        patch.setattr(xr.Dataset, writer, fail_at_the_end)
        with pytest.raises(OSError, match="disk full"):
            export_snapshots(snapshots, path)
    assert not path.exists()
    assert_same_snapshots(open_snapshots(export_snapshots(snapshots, path)), snapshots)


# Paths that hold no snapshots


def netcdf(snapshots: xr.Dataset, path: Path, share: float, kind: str = "NETCDF4") -> None:
    """The first bytes of a file. The classic format has no end mark: the rest is read as zeros."""
    if kind == "NETCDF4":
        export_snapshots(snapshots, path)
    else:
        snapshots.to_netcdf(path, format=kind)
    content = path.read_bytes()
    path.write_bytes(content[: int(share * len(content))])


def zarr_with_damaged_metadata(snapshots: xr.Dataset, path: Path) -> None:
    export_snapshots(snapshots, path.with_suffix(".zarr")).rename(path)
    (path / "zarr.json").write_text('{"zarr_format": 3,')


CLASSIC = "NETCDF3_64BIT"


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda data, path: None, " does not exist"),
        (
            lambda data, path: path.write_text("no store\n"),
            " is neither a snapshot store nor a Net",
        ),
        (lambda data, path: path.mkdir(), " is a folder, but neither an Icechunk"),
        (zarr_with_damaged_metadata, " is damaged or not a snapshot store"),
        *[(partial(netcdf, share=share), " is ") for share in (0.0, 0.001, 0.2, 0.7, 0.999)],
        *[
            (partial(netcdf, share=share, kind=CLASSIC), ": truncated")
            for share in (0.01, 0.5, 0.99)
        ],
    ],
)
def test_what_is_no_whole_store_is_refused(tmp_path, snapshots, make, said):
    path = tmp_path / "data.nc"
    make(snapshots, path)
    with pytest.raises(PlumecastError, match=f"{path}{said}"):
        open_snapshots(path)


def test_damaged_icechunk_store_is_refused_in_one_line(store):
    for path in (store / "snapshots").iterdir():
        path.write_bytes(b"damaged")
    with pytest.raises(PlumecastError, match=f"{store} ") as error:
        open_snapshots(store)
    assert "\n" not in str(error.value)


def test_what_is_missing_in_the_content_is_named_with_the_path(tmp_path, snapshots):
    path = export_snapshots(snapshots.drop_vars("smoke"), tmp_path / "plain.nc")
    with pytest.raises(PlumecastError, match=f"{path}: variable 'smoke' is missing; found "):
        open_snapshots(path)
    fires = open_snapshots(path, fields=["time_since_ignition"])
    np.testing.assert_array_equal(fires.time_since_ignition, snapshots.time_since_ignition)


def test_real_wrf_fire_snapshots_meet_the_contract():
    ensemble = open_snapshots(shared_data("wrf/ensemble.nc"))
    checked = validate_snapshots(ensemble)
    assert dict(checked.sizes)["y"] == 32
    assert dict(checked.sizes)["x"] == 40
    assert float(checked.smoke.max()) > 0.0


def with_shares(fire: xr.Dataset, count: int) -> xr.Dataset:
    """A fire with burned shares at some hours of each snapshot."""
    shape = (fire.sizes["snapshot"], count)
    hours = np.sort(np.random.default_rng(count).uniform(1.0, 5.0, shape)).astype(np.float32)
    shares = np.linspace(0.1, 1.0, count)[:, None, None] * (fire[FIRE].values[:, None] > 0.0)
    dims = ("snapshot", "history", *fire[FIRE].dims[1:])
    return fire.assign(
        history_burned_share=(dims, np.float32(shares), {"units": "1"}),
        history_hours=(dims[:2], hours, {"units": "h"}),
    )


@pytest.mark.parametrize("count", [1, 3])
def test_a_fire_with_fewer_hours_of_history_is_appended(tmp_path, snapshots, count):
    path, (first, second) = tmp_path / "ensemble.zarr", fires_of(snapshots)[:2]
    added = with_shares(second, count)
    append_fire(path, with_shares(first, 3))
    append_fire(path, added)
    stored = select_fire(open_snapshots(path).load(), str(second.fire_id.values[0]))
    for name in ("history_burned_share", "history_hours"):
        np.testing.assert_array_equal(stored[name][:, :count], added[name])
        assert stored[name].attrs == added[name].attrs
    assert np.isnan(stored.history_hours[:, count:]).all()
    assert not stored.history_burned_share[:, count:].any()
