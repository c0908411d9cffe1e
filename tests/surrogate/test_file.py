"""Saved surrogates: bit-identical after loading, written atomically; damaged files are refused."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
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
from support.snapshots import make_snapshots

POLYNOMIALS: dict[str, tuple[type, dict[str, Any]]] = {
    "linear by Theorem 1": (PrimalMap, {"preset": "paper-linear"}),
    "primal quadratic": (PrimalMap, {"degree": 2, "fire_rank": 3}),
    "dual quadratic": (DualMap, {"degree": 2, "fire_rank": 10}),
    "dual cubic, centred": (DualMap, {"degree": 3, "fire_rank": 8, "center": True}),
    "centred": (PrimalMap, {"degree": 1, "center": True}),
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


def test_stacked_outputs_and_coordinates_in_another_byte_order_survive(split, tmp_path):
    swapped = split.train.x.values.astype(">f8")
    train = with_log_smoke(split.train.assign_coords(x=("x", swapped, split.train.x.attrs)))
    surrogate = fit_surrogate(train, outputs=["smoke", "log_smoke"])
    loaded = load_surrogate(surrogate.save(tmp_path / "smoke.plume"))
    before, after = surrogate.predict(split.test), loaded.predict(split.test)
    for name in ("smoke", "log_smoke"):
        assert_same_bits(after[name].values, before[name].values)


def test_a_file_holds_flat_arrays_units_grid_settings_and_provenance(surrogate, saved, tmp_path):
    arrays = safetensors.numpy.load_file(saved)
    modes = arrays["operator.output_basis.modes"]
    assert_same_bits(modes, surrogate.operator.output_basis.modes)
    header = read_header(saved)
    assert (header["format"], header["version"]) == (2, __version__)
    (smoke,) = header["value"]["outputs"]["fields"]["@tuple"]
    assert (smoke["attrs"]["units"], smoke["shape"]) == ("ug m-3", {"@tuple": [8, 10]})
    loaded = load_surrogate(saved)
    assert loaded.settings == surrogate.settings
    assert loaded.training == surrogate.training
    assert surrogate.save(tmp_path / "again.plume").read_bytes() == saved.read_bytes()


# Damaged and foreign files


@pytest.mark.parametrize("length", [0, 1, 7, 8, 9, 100, 2000, -1000, -8, -1, None])
def test_truncated_and_longer_files_are_refused(saved, tmp_path, length):
    path = tmp_path / "short.plume"
    content = saved.read_bytes()
    path.write_bytes(content + b"more" if length is None else content[:length])
    with pytest.raises(PlumecastError, match=f"{path} is truncated, damaged or not a saved"):
        load_surrogate(path)


def in_header(saved: Path, path: Path, old: str, new: str) -> None:
    """A copy with one piece of the header replaced by another of the same length."""
    before, after = (text.replace('"', r"\"").encode() for text in (old, new))
    content = saved.read_bytes()
    assert content.count(before) == 1, f"{old} is not in the header once"
    assert len(before) == len(after)
    path.write_bytes(content.replace(before, after))


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


def altered_array(saved: Path, path: Path, back: int) -> None:
    content = bytearray(saved.read_bytes())
    content[-back] ^= 1
    path.write_bytes(content)


@pytest.mark.parametrize(
    ("edit", "said"),
    [
        *((partial(altered_array, back=back), "was altered: its checksum") for back in (1, 1000)),
        (
            partial(in_header, old='"nonnegative": true', new='"nonnegative":false'),
            "was altered: its checksum does not match",
        ),
        *(
            (
                partial(in_header, old='"format": 2', new=f'"format": {written}'),
                rf"has format {written} \(plumecast .*\), this plumecast .* reads format 2; train",
            )
            for written in (1, 3)
        ),
    ],
)
def test_altered_files_and_other_formats_are_refused(saved, tmp_path, edit, said):
    path = tmp_path / "altered.plume"
    edit(saved, path)
    with pytest.raises(PlumecastError, match=f"{path} {said}"):
        load_surrogate(path)


@dataclass
class Popen:
    args: str


@dataclass
class Crafted:
    """Saved under the name of a class of plumecast, with other contents."""

    modes: Any
    spectrum: np.ndarray


Crafted.__name__ = "Basis"


def foreign(header: str | None) -> Callable[[Path], object]:
    metadata = None if header is None else {"plumecast": header}
    return lambda path: safetensors.numpy.save_file({"a": np.ones(3)}, path, metadata=metadata)


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda path: None, "does not exist or is not a file"),
        (lambda path: path.mkdir(), "is a folder; here a surrogate is"),
        (lambda path: path.write_text("a surrogate, honestly\n" * 10), "is truncated, damaged or"),
        (lambda path: make_snapshots(fires=1).to_netcdf(path), "is a NetCDF file; here a surro"),
        (foreign(None), "is a safetensors file, but not one of"),
        *((foreign(text), "has a damaged header") for text in ("no JSON", "[]", "1", "{}")),
        (foreign('{"format": 1}'), "has a damaged header"),
        (lambda path: save_value(Popen("echo"), path), ".*'Popen', unknown to this plumecast"),
        (lambda path: save_value(Crafted({"@array": "nowhere"}, np.ones(3)), path), ""),
        (lambda path: save_value(Crafted(np.ones(3), np.ones(3)), path), ""),
        (lambda path: save_value(fit_basis(np.eye(3), rank=2), path), "holds a Basis, not a sur"),
    ],
)
def test_what_is_no_surrogate_is_refused(tmp_path, make, said):
    path = tmp_path / "strange.plume"
    make(path)
    with pytest.raises(PlumecastError, match=f"{path}:? {said}"):
        load_surrogate(path)
    with pytest.raises(TypeError, match=r"args: a set cannot be saved"):
        save_value(Popen({1}), tmp_path / "never.plume")


# Atomic writes


def test_saving_replaces_the_file_or_leaves_the_old_one(saved, split, tmp_path, monkeypatch):
    path = tmp_path / "new" / "folder" / "smoke.plume"
    for degree in (1, 2):
        fit_surrogate(split.train, degree=degree, fire_rank=4).save(path)
        assert load_surrogate(path).settings["degree"] == degree
    before = path.read_bytes()

    def full(descriptor):
        raise OSError("disk full")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="disk full"):
        fit_surrogate(split.train).save(path)
    assert path.read_bytes() == before
    assert list(path.parent.iterdir()) == [path]
