"""Files with a correct checksum and wrong contents are refused when they are loaded."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors
import safetensors.numpy

from plumecast.base.errors import PlumecastError
from plumecast.base.integrity import digest_of
from plumecast.surrogate.baselines import fit_baseline
from plumecast.surrogate.fit import fit_surrogate
from plumecast.surrogate.load import load_surrogate
from support.windy_fires import windy

LIFTED: dict[str, Any] = {"lift": ["age-bins", "burned"], "targets": ["log", "footprint"]}
FITS: dict[str, dict[str, Any]] = {
    "linear": {"preset": "paper-linear"},
    "quadratic": {"preset": "paper-quadratic", "fire_rank": 4, "smoke_rank": 4},
    "kernel": {"kernel": "polynomial-1 + matern-5/2", "center": True, "fire_rank": 4},
    "lifted": {"family": "coded", "fire_rank": 4, "smoke_rank": 4, **LIFTED},
    "recommended": {"preset": "recommended", "layers": 2},
    "corrected": {"preset": "recommended", "layers": 1, "correction": True},
    "wind": {"preset": "quick", "frame": "wind", "covariates": ["wind_speed"], "layers": 1},
}
NAMES = (*FITS, "gp-images")

Edit = Callable[[dict[str, Any], dict[str, np.ndarray]], None]


@pytest.fixture(scope="module")
def models(tmp_path_factory) -> Path:
    """A folder with one file of every kind of operator."""
    folder = tmp_path_factory.mktemp("models")
    fires = windy(8, shape=(12, 14))
    for name, choices in FITS.items():
        fit_surrogate(fires, **choices).save(folder / f"{name}.plume")
    fit_baseline("gp-images", fires).save(folder / "gp-images.plume")
    return folder


def rewritten(source: Path, path: Path, edit: Edit) -> Path:
    """A copy with its header and arrays edited and the checksum made to match."""
    with safetensors.safe_open(source, framework="np") as file:
        header = json.loads(file.metadata()["plumecast"])
        arrays = {name: np.array(file.get_tensor(name)) for name in file.keys()}  # noqa: SIM118
    edit(header, arrays)
    del header["checksum"]
    header["checksum"] = digest_of(header, arrays)
    path.write_bytes(safetensors.numpy.save(arrays, metadata={"plumecast": json.dumps(header)}))
    return path


def arrays_of(path: Path) -> list[str]:
    stored = safetensors.numpy.load_file(path)
    return [key for key, array in stored.items() if key.startswith("operator") and array.size > 1]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("change", ["nan", "int", "flat", "short", "drop", "extra axis"])
def test_a_wrong_array_is_refused(models, tmp_path, name, change):
    changes: dict[str, Callable[[np.ndarray], np.ndarray]] = {
        "nan": lambda array: np.where(
            np.arange(array.size).reshape(array.shape) == 1, np.nan, array
        ),
        "int": lambda array: array.astype(np.int64),
        "flat": lambda array: array.reshape(-1, 1, 1, 1, 1, 1),
        "short": lambda array: array[:-1],
        "extra axis": lambda array: array[None],
    }
    for key in arrays_of(models / f"{name}.plume"):
        if change == "short" and key.endswith(("spectrum", "correction.lift.knots")):
            continue  # no prediction uses them

        def edit(header: dict[str, Any], arrays: dict[str, np.ndarray], key: str = key) -> None:
            if change == "drop":
                del arrays[key]
            else:
                arrays[key] = changes[change](arrays[key]).astype(
                    np.int64 if change == "int" else arrays[key].dtype
                )

        path = rewritten(models / f"{name}.plume", tmp_path / "wrong.plume", edit)
        with pytest.raises(PlumecastError, match=str(path)):
            load_surrogate(path)


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (lambda header: header["value"]["settings"].update(layers=-1), "layers=-1 must be"),
        (lambda header: header["value"]["settings"].update(family="other"), "family 'other' is"),
        (lambda header: header["value"]["settings"].update(age_bins="3"), "age_bins='3' is not a"),
        (lambda header: header["value"]["operator"]["targets"].update(epsilon=float("nan")),
         "epsilon=nan is not a finite"),
        (lambda header: header["value"]["operator"]["targets"].update(names={"@tuple": ["log"]}),
         "T = "),
        (lambda header: header["value"]["training"].update(thresholds={"smoke": None}),
         "thresholds.smoke=None is not"),
        (lambda header: header["value"]["training"].update(ranges={"peak": 3}),
         "ranges.peak=3 is no pair"),
        (lambda header: header["value"].pop("inputs"), "does not describe a known value"),
        (lambda header: header["value"].update(settings=None), "settings=None is not"),
    ],
)  # fmt: skip
def test_a_wrong_record_is_refused(models, tmp_path, edit, message):
    source = models / "recommended.plume"
    path = rewritten(source, tmp_path / "wrong.plume", lambda header, arrays: edit(header))
    with pytest.raises(PlumecastError, match=message):
        load_surrogate(path)


def test_the_version_is_under_the_checksum(models, tmp_path):
    content = (models / "linear.plume").read_bytes()
    old = b'"version\\": \\"0'
    assert content.count(old) == 1
    altered = tmp_path / "altered.plume"
    altered.write_bytes(content.replace(old, old[:-1] + b"9"))
    with pytest.raises(PlumecastError, match="was altered: its checksum does not match"):
        load_surrogate(altered)
