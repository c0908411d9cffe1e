"""Stored values are what was written: flipped bits, lost chunks and edited metadata are found."""

from __future__ import annotations

import itertools
import json
import warnings

import netCDF4
import numpy as np
import pytest
import xarray as xr

from plumecast.base.errors import PlumecastError
from plumecast.base.integrity import ChangedWarning, DamagedError, field_checksums
from plumecast.data.checksums import CHECKSUMS, has_checksums
from plumecast.data.findings import check_store
from plumecast.data.rewrite import relabel_fires
from plumecast.data.store import append_fire, export_snapshots, open_snapshots
from plumecast.data.writers import quiet_zarr, to_stored_types
from plumecast.surrogate.fit import fit_surrogate
from support.snapshots import fires_of, make_snapshots


@pytest.fixture(scope="module")
def snapshots():
    return make_snapshots(fires=4, checkpoints=2, shape=(5, 6))


def flip(path, place=None):
    """Flip one bit in the middle of a file, or at `place`."""
    content = bytearray(path.read_bytes())
    content[len(content) // 2 if place is None else place] ^= 4
    path.write_bytes(bytes(content))


def chunks_of(store, name):
    return sorted(path for path in (store / name / "c").rglob("*") if path.is_file())


def test_checksums_do_not_depend_on_byte_order_or_memory_layout():
    rows = np.random.default_rng(0).random((3, 4, 5)).astype(np.float32)
    expected = field_checksums(rows)
    np.testing.assert_array_equal(field_checksums(rows.astype(">f4")), expected)
    np.testing.assert_array_equal(field_checksums(np.asfortranarray(rows)), expected)
    assert field_checksums(rows[:0]).shape == (0,)


@pytest.mark.parametrize("ending", [".zarr", ".nc"])
def test_exports_open_again_with_their_checksums_and_units(tmp_path, snapshots, ending):
    bare = snapshots.copy(deep=True)
    for name in ("x", "y", "hours", "burned_area"):
        bare[name].attrs.clear()
    opened = open_snapshots(export_snapshots(bare, tmp_path / f"fires{ending}"))
    assert opened.x.attrs["units"] == "m"
    assert has_checksums(opened)
    assert CHECKSUMS not in opened.variables
    assert CHECKSUMS not in opened.attrs
    np.testing.assert_array_equal(opened.smoke.values, snapshots.smoke.values)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        again = open_snapshots(export_snapshots(opened, tmp_path / f"again{ending}"))
    xr.testing.assert_equal(again.load(), opened.load())


def test_a_flipped_bit_in_a_chunk_is_refused_and_its_fires_are_listed(tmp_path):
    """A request of all fires names only the damaged ones."""
    many = make_snapshots(fires=16, checkpoints=4, shape=(5, 6), droughts=("low",))
    path = export_snapshots(many, tmp_path / "many.zarr")
    flip(chunks_of(path, "smoke")[0])
    opened = open_snapshots(path)
    listed = sorted(
        fire
        for fire, findings in check_store(opened).items()
        if any(finding.check == "damaged smoke" for finding in findings)
    )
    assert 0 < len(listed) < 16
    words = f"{path}: 'smoke' of fire '{listed[0]}' and {len(listed) - 1} more cannot be read"
    with pytest.raises(DamagedError, match=words):
        opened.smoke.load()
    with pytest.raises(PlumecastError, match="cannot be read"):
        fit_surrogate(opened, "paper-quadratic")
    flip(export_snapshots(many, tmp_path / "fires.nc"), 60)
    with pytest.raises(DamagedError, match=r"fires\.nc is damaged"):
        open_snapshots(tmp_path / "fires.nc")


@pytest.mark.parametrize(
    ("name", "checked"),
    [("smoke", True), *itertools.product(["hours", "x", "fire_id"], [True, False])],
)
def test_a_lost_chunk_is_refused(tmp_path, snapshots, name, checked):
    """Zarr reads zeros there, without a word."""
    path = tmp_path / "fires.zarr"
    if checked:
        export_snapshots(snapshots, path)
    else:
        with quiet_zarr():
            to_stored_types(snapshots).to_zarr(path, consolidated=False, zarr_format=3)
    chunks_of(path, name)[0].unlink()
    with pytest.raises(PlumecastError, match=str(path)):
        open_snapshots(path).load()


def test_one_value_that_another_program_changed_is_found_in_its_fire_alone(tmp_path, snapshots):
    path = export_snapshots(snapshots, tmp_path / "fires.nc")
    with netCDF4.Dataset(path, "a") as file:
        file["smoke"][3, 2, 2] += 1.0
    opened = open_snapshots(path)
    fire = str(snapshots.fire_id.values[3])
    with pytest.raises(DamagedError, match=f"fire '{fire}' is not what was written"):
        opened.smoke.load()
    damaged = [fire for fire, found in check_store(opened).items() if found]
    assert damaged == [fire]


def test_fires_that_are_appended_and_relabelled_have_checksums(tmp_path, snapshots):
    path = tmp_path / "store"
    for fire in fires_of(snapshots):
        append_fire(path, fire)
    relabel_fires(path, {"drought": {str(snapshots.fire_id.values[0]): "medium"}})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        opened = open_snapshots(path)
    assert has_checksums(opened)
    assert "medium" in opened.load().drought.values


def test_fires_can_be_appended_to_a_store_without_checksums(tmp_path, snapshots, monkeypatch):
    path, (first, second, *_) = tmp_path / "store", fires_of(snapshots)
    with monkeypatch.context() as patch:
        patch.setattr("plumecast.data.store.with_checksums", lambda fire: fire)
        append_fire(path, first)
    append_fire(path, second)
    opened = open_snapshots(path)
    assert has_checksums(opened) is False
    assert opened.load().sizes["snapshot"] == 4


def test_a_changed_attribute_is_a_warning_and_a_finding(tmp_path, snapshots):
    path = export_snapshots(snapshots, tmp_path / "fires.zarr")
    metadata = path / "smoke" / "zarr.json"
    content = json.loads(metadata.read_text())
    content["attributes"]["checkpoint_interval"] = 1.0
    metadata.write_text(json.dumps(content))
    with pytest.warns(ChangedWarning, match="attributes of 'smoke'"):
        opened = open_snapshots(path)
    assert [finding.check for finding in check_store(opened)[""]] == ["attributes"]


def test_parts_of_a_grid_are_read_without_the_checksum(tmp_path, snapshots):
    opened = open_snapshots(export_snapshots(snapshots, tmp_path / "fires.zarr"))
    part = opened.smoke.isel(x=slice(1, 3), snapshot=[2, 0])
    np.testing.assert_array_equal(part.values, snapshots.smoke.values[[2, 0], :, 1:3])
    assert float(opened.smoke[1, 2, 3]) == float(snapshots.smoke[1, 2, 3])
    np.testing.assert_array_equal(opened.smoke[5].values, snapshots.smoke.values[5])


# Damaged or hand-edited metadata: one line with the path, and no memory for absurd shapes


DEEP = 100_000


def edited(path, name, **changes):
    metadata = path / name / "zarr.json"
    metadata.write_text(json.dumps(json.loads(metadata.read_text()) | changes))
    return path


@pytest.fixture
def store(tmp_path):
    return export_snapshots(
        make_snapshots(fires=4, checkpoints=2, shape=(5, 6)), tmp_path / "a.zarr"
    )


@pytest.mark.parametrize(
    ("name", "changes"),
    [
        ("x", {"shape": [10**15]}),
        ("x", {"shape": [0]}),
        ("x", {"dimension_names": ["-"]}),
        ("x", {"shape": [-4]}),
        ("hours", {"shape": [10**10]}),
        ("hours", {"chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [10**14]}}}),
        ("smoke", {"data_type": "quaternion"}),
        ("smoke", {"shape": [8, 5, 10**9]}),
        ("smoke", {"shape": [8, 5, 0]}),
        ("smoke", {"codecs": []}),
        ("fire_id", {"data_type": "int8"}),
        ("fire_id", {"dimension_names": ["-"]}),
        (".", {"attributes": {}}),
        (".", {"zarr_format": 9}),
    ],
)
@pytest.mark.parametrize("options", [("info", "--check"), ("train", "--all", "-o", "m.plume")])
def test_edited_metadata_are_one_line(store, refused, name, changes, options, tmp_path):
    command, *rest = (str(tmp_path / item) if item == "m.plume" else item for item in options)
    assert str(store) in refused(command, edited(store, name, **changes), *rest)


@pytest.mark.parametrize("name", [".", "x", "smoke"])
def test_deeply_nested_json_is_one_line(store, refused, name):
    (store / name / "zarr.json").write_text("[" * DEEP + "]" * DEEP)
    assert str(store) in refused("info", store)
