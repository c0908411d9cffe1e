"""Saved surrogates: bit-identical after loading, written atomically; damaged files are refused."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors.numpy
from hypothesis import given
from hypothesis import strategies as st

from plumecast.base.errors import PlumecastError
from plumecast.base.version import __version__
from plumecast.operators.coded.kernels import KernelMap
from plumecast.operators.coded.polynomial_map import DualMap, PrimalMap
from plumecast.operators.pca import fit_basis
from plumecast.scores.optical_depth import with_log_smoke
from plumecast.surrogate.baselines import BASELINES, fit_baseline
from plumecast.surrogate.file import read_header, save_value
from plumecast.surrogate.fit import fit_surrogate
from plumecast.surrogate.load import load_surrogate
from plumecast.surrogate.surrogate import Surrogate
from support.places import REPOSITORY

POLYNOMIALS: dict[str, tuple[type, dict[str, Any]]] = {
    "linear by Theorem 1": (PrimalMap, {"preset": "paper-linear"}),
    "linear, penalty chosen": (PrimalMap, {"degree": 1}),
    "primal quadratic": (PrimalMap, {"degree": 2, "fire_rank": 3}),
    "dual quadratic": (DualMap, {"degree": 2, "fire_rank": 10}),
    "dual quadratic, penalty given": (DualMap, {"degree": 2, "fire_rank": 10, "penalty": 1e3}),
    "dual cubic, centred": (DualMap, {"degree": 3, "fire_rank": 8, "center": True}),
    "centred": (PrimalMap, {"degree": 1, "center": True}),
    "matern": (KernelMap, {"kernel": "matern-5/2"}),
    "sum, centred": (KernelMap, {"kernel": "polynomial-1 + matern-5/2", "center": True}),
}


@pytest.fixture(scope="module")
def surrogate(split) -> Surrogate:
    return fit_surrogate(split.train, degree=2, fire_rank=10)


@pytest.fixture(scope="module")
def saved(surrogate, tmp_path_factory) -> Path:
    return surrogate.save(tmp_path_factory.mktemp("saved") / "smoke.plume")


def assert_same_bits(got: np.ndarray, expected: np.ndarray) -> None:
    assert got.dtype == expected.dtype
    assert got.tobytes() == expected.tobytes()


def assert_predicts_the_same(surrogate: Surrogate, data, path: Path) -> None:
    loaded = load_surrogate(surrogate.save(path))
    before, after = surrogate.predict(data), loaded.predict(data)
    assert after.identical(before)
    assert_same_bits(after.values, before.values)
    one = data.time_since_ignition.values[0].astype(np.float64)
    assert_same_bits(loaded.predict(one), surrogate.predict(one))


@pytest.mark.parametrize("name", POLYNOMIALS)
def test_loaded_polynomial_predicts_bit_for_bit(split, tmp_path, name):
    kind, choices = POLYNOMIALS[name]
    surrogate = fit_surrogate(split.train, **choices)
    assert type(surrogate.operator.code_map) is kind
    assert_predicts_the_same(surrogate, split.test, tmp_path / "smoke.plume")


@pytest.mark.parametrize("name", BASELINES)
def test_loaded_baseline_predicts_bit_for_bit(split, tmp_path, name):
    assert_predicts_the_same(fit_baseline(name, split.train), split.test, tmp_path / "base.plume")


def test_loaded_surrogate_of_stacked_outputs_predicts_bit_for_bit(split, tmp_path):
    train = with_log_smoke(split.train)
    surrogate = fit_surrogate(train, outputs=["smoke", "log_smoke"])
    loaded = load_surrogate(surrogate.save(tmp_path / "smoke.plume"))
    before, after = surrogate.predict(split.test), loaded.predict(split.test)
    for name in ("smoke", "log_smoke"):
        assert_same_bits(after[name].values, before[name].values)


def test_coordinates_in_another_byte_order_survive(split, tmp_path):
    swapped = split.train.x.values.astype(">f8")
    train = split.train.assign_coords(x=("x", swapped, split.train.x.attrs))
    assert_predicts_the_same(fit_surrogate(train), split.test, tmp_path / "smoke.plume")


def test_settings_and_provenance_are_read_back_as_they_were(surrogate, saved):
    loaded = load_surrogate(saved)
    assert loaded.settings == surrogate.settings
    assert loaded.training == surrogate.training
    assert loaded.training["snapshots"] == 24
    assert loaded.training["penalty"] > 0.0


def test_header_holds_format_version_units_grid_and_a_checksum(saved):
    header = read_header(saved)
    assert header["format"] == 2
    assert header["version"] == __version__
    assert header["checksum"].startswith("sha256:")
    (smoke,) = header["value"]["outputs"]["fields"]["@tuple"]
    assert smoke["attrs"]["units"] == "ug m-3"
    assert smoke["shape"] == {"@tuple": [8, 10]}


def test_file_holds_flat_arrays_that_any_safetensors_reader_opens(surrogate, saved):
    arrays = safetensors.numpy.load_file(saved)
    modes = arrays["operator.output_basis.modes"]
    assert_same_bits(modes, surrogate.operator.output_basis.modes)


# Damaged and foreign files


@pytest.mark.parametrize("length", [0, 1, 7, 8, 9, 100, 2000, -1000, -8, -1])
def test_truncated_file_is_refused(saved, tmp_path, length):
    path = tmp_path / "short.plume"
    path.write_bytes(saved.read_bytes()[:length])
    with pytest.raises(PlumecastError, match=f"{path} is truncated, damaged or not a saved"):
        load_surrogate(path)


def test_longer_file_is_refused(saved, tmp_path):
    path = tmp_path / "long.plume"
    path.write_bytes(saved.read_bytes() + b"more")
    with pytest.raises(PlumecastError, match=f"{path} is truncated, damaged or not a saved"):
        load_surrogate(path)


@pytest.mark.parametrize("back", [1, 1000, 5000])
def test_one_altered_byte_among_the_arrays_is_refused(saved, tmp_path, back):
    content = bytearray(saved.read_bytes())
    content[-back] ^= 1
    path = tmp_path / "altered.plume"
    path.write_bytes(content)
    with pytest.raises(PlumecastError, match=f"{path} was altered: its checksum does not match"):
        load_surrogate(path)


def in_header(saved: Path, path: Path, old: str, new: str) -> Path:
    """A copy with one piece of the header replaced by another of the same length."""
    before, after = (text.replace('"', r"\"").encode() for text in (old, new))
    content = saved.read_bytes()
    assert content.count(before) == 1, f"{old} is not in the header once"
    assert len(before) == len(after)
    path.write_bytes(content.replace(before, after))
    return path


def test_altered_header_is_refused(saved, tmp_path):
    path = in_header(
        saved, tmp_path / "altered.plume", '"nonnegative": true', '"nonnegative":false'
    )
    with pytest.raises(PlumecastError, match=f"{path} was altered: its checksum does not match"):
        load_surrogate(path)


@given(position=st.floats(0.0, 1.0, exclude_max=True), bit=st.integers(0, 7))
def test_any_altered_bit_is_refused_or_changes_no_prediction(
    saved, surrogate, split, position, bit
):
    content = bytearray(saved.read_bytes())
    # Half of the draws within the header, which is the smaller part of the file.
    header = 8 + int.from_bytes(content[:8], "little")
    index = int(2 * position * header) if position < 0.5 else int(position * len(content))
    content[index] ^= 1 << bit
    path = saved.with_name("altered.plume")
    path.write_bytes(content)
    try:
        loaded = load_surrogate(path)
    except PlumecastError:
        return
    field = split.test.time_since_ignition.values[-1]
    assert_same_bits(loaded.predict(field), surrogate.predict(field))


@pytest.mark.parametrize("written", [1, 3])
def test_another_format_is_refused_with_both_numbers(saved, tmp_path, written):
    path = in_header(saved, tmp_path / "other.plume", '"format": 2', f'"format": {written}')
    message = (
        rf"{path} has format {written} \(plumecast .*\), this plumecast .* reads format 2; train"
    )
    with pytest.raises(PlumecastError, match=message):
        load_surrogate(path)


def test_missing_file_and_folder_are_named(tmp_path):
    missing = tmp_path / "nowhere.plume"
    with pytest.raises(PlumecastError, match=f"{missing} does not exist or is not a file"):
        load_surrogate(missing)
    with pytest.raises(PlumecastError, match=f"{tmp_path} is a folder; here a surrogate is"):
        load_surrogate(tmp_path)


def test_other_kinds_of_file_are_refused(snapshots, tmp_path):
    text, netcdf = tmp_path / "notes.txt", tmp_path / "plain.nc"
    text.write_text("a surrogate, honestly\n" * 10)
    snapshots.to_netcdf(netcdf)
    with pytest.raises(PlumecastError, match=f"{netcdf} is a NetCDF file; here a surrogate"):
        load_surrogate(netcdf)
    for path in (text, REPOSITORY / "pyproject.toml"):
        with pytest.raises(PlumecastError, match=f"{path} is truncated, damaged or not a saved"):
            load_surrogate(path)


def test_safetensors_file_of_another_program_is_refused(tmp_path):
    path = tmp_path / "weights.safetensors"
    safetensors.numpy.save_file({"weights": np.ones(3)}, path)
    with pytest.raises(PlumecastError, match=f"{path} is a safetensors file, but not one of"):
        load_surrogate(path)


@pytest.mark.parametrize("header", ["no JSON", "[]", "1", '{"format": 1}', "{}"])
def test_header_that_is_not_plumecasts_is_refused(tmp_path, header):
    path = tmp_path / "strange.plume"
    safetensors.numpy.save_file({"a": np.ones(3)}, path, metadata={"plumecast": header})
    with pytest.raises(PlumecastError, match=f"{path} has a damaged header"):
        load_surrogate(path)


def test_file_that_names_an_unknown_class_is_refused(tmp_path):
    @dataclass
    class Popen:
        args: str

    path = save_value(Popen("echo run by the file"), tmp_path / "crafted.plume")
    with pytest.raises(PlumecastError, match="holds a 'Popen', unknown to this plumecast"):
        load_surrogate(path)


def test_known_class_with_other_fields_is_refused(tmp_path):
    @dataclass
    class Basis:
        weights: np.ndarray

    path = save_value(Basis(np.ones(3)), tmp_path / "crafted.plume")
    with pytest.raises(PlumecastError, match=f"{path} "):
        load_surrogate(path)


def test_header_that_names_a_missing_array_is_refused(tmp_path):
    @dataclass
    class Basis:
        modes: dict[str, str]
        spectrum: np.ndarray

    crafted = Basis({"@array": "nowhere"}, np.ones(3))
    path = save_value(crafted, tmp_path / "crafted.plume")
    with pytest.raises(PlumecastError, match=f"{path} "):
        load_surrogate(path)


def test_saved_value_that_is_no_surrogate_is_refused(tmp_path):
    path = save_value(fit_basis(np.eye(3), rank=2), tmp_path / "basis.plume")
    with pytest.raises(PlumecastError, match=f"{path} holds a Basis, not a surrogate"):
        load_surrogate(path)


# Atomic writes


def test_saving_that_fails_leaves_the_old_file_and_nothing_else(
    saved, split, tmp_path, monkeypatch
):
    path = tmp_path / "smoke.plume"
    path.write_bytes(saved.read_bytes())

    def full(descriptor):
        raise OSError("disk full")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="disk full"):
        fit_surrogate(split.train).save(path)
    assert path.read_bytes() == saved.read_bytes()
    assert list(tmp_path.iterdir()) == [path]


def test_saving_again_replaces_the_file_and_leaves_nothing_else(split, tmp_path):
    path = tmp_path / "new" / "folder" / "smoke.plume"
    for degree in (1, 2):
        fit_surrogate(split.train, degree=degree, fire_rank=4).save(path)
        assert load_surrogate(path).settings["degree"] == degree
    assert list(path.parent.iterdir()) == [path]


def test_saving_twice_gives_the_same_bytes(surrogate, saved, tmp_path):
    assert surrogate.save(tmp_path / "again.plume").read_bytes() == saved.read_bytes()


def test_value_that_cannot_be_saved_is_named(tmp_path):
    @dataclass
    class Holder:
        inner: dict[str, object]

    with pytest.raises(TypeError, match=r"inner\.what: a set cannot be saved"):
        save_value(Holder({"what": {1}}), tmp_path / "never.plume")
    assert list(tmp_path.iterdir()) == []
