"""Files with a correct checksum and wrong contents are refused when they are loaded."""

from __future__ import annotations

import json
import time
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
from support.snapshots import add_weather, make_snapshots
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
    weather = add_weather(make_snapshots(8, shape=(12, 14)))
    fit_surrogate(weather, "quick", physics="column", layers=1).save(folder / "carried.plume")
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


def physics(**values: Any) -> Callable[[dict[str, Any]], None]:
    return lambda operator: operator["physics"].update(values)


def pair(*values: Any) -> dict[str, Any]:
    return {"@tuple": list(values)}


@pytest.mark.parametrize(
    ("name", "edit", "message"),
    [
        ("carried", physics(spacing=pair(0.01, 0.01)), "is not that of its grid"),
        ("carried", physics(spacing=pair(1000.0, -1000.0)), "is not that of its grid"),
        ("carried", physics(step=1e-3), "step=0.001 of its transport is not within 0.2475"),
        ("carried", physics(step=0.45), "does not divide its interval of 6 h"),
        ("carried", physics(interval=12.0), "is not that of its smoke, 6"),
        ("carried", physics(groups=pair(0, 2, 4, 6)), "floors is (1,), but (3,) elsewhere"),
        ("carried", physics(groups=pair(2, 6)), "groups=(2, 6) of its transport are unknown"),
        ("carried", lambda operator: operator.update(shape=pair(14, 12)),
         "the shape of its operator is (14, 12), but (12, 14) elsewhere"),
        ("wind", lambda operator: operator["frame"].update(spacing=pair(1000.0, 2000.0)),
         "of its wind frame is not that of its grid"),
        ("wind", lambda operator: operator["frame"].update(canvas=pair(10**5, 10**5)),
         "the canvas of its wind frame is (100000, 100000), but (20, 20) elsewhere"),
        ("recommended", lambda operator: operator["field_map"]["frequencies"].update(
            padded=pair(10**6, 18)), "padded is (1000000, 18), but"),
        ("recommended", lambda operator: operator["field_map"]["frequencies"].update(
            highest=pair(2, 2)), "number of operator.field_map.frequencies is (840,), but (15,)"),
    ],
)  # fmt: skip
def test_parts_that_disagree_are_refused_at_once(models, tmp_path, refused, name, edit, message):
    """A spacing that was not that of the grid let every command run without end."""
    source = models / f"{name}.plume"

    def change(header: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        edit(header["value"]["operator"])

    path = rewritten(source, tmp_path / "wrong.plume", change)
    start = time.perf_counter()
    said = refused("info", path)
    assert said.startswith(f"{path} cannot be used: ")
    assert message in said
    assert time.perf_counter() - start < 5.0


def test_the_version_is_under_the_checksum(models, tmp_path):
    content = (models / "linear.plume").read_bytes()
    old = b'"version\\": \\"0'
    assert content.count(old) == 1
    altered = tmp_path / "altered.plume"
    altered.write_bytes(content.replace(old, old[:-1] + b"9"))
    with pytest.raises(PlumecastError, match="was altered: its checksum does not match"):
        load_surrogate(altered)
