"""The built wheel, installed without extras into an empty environment, trains and predicts."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import xarray as xr

from plumecast.base.version import __version__
from plumecast.data.store import export_snapshots
from plumecast.surrogate.load import load_surrogate
from support.places import REPOSITORY
from support.quantities import settled
from support.snapshots import make_snapshots

EXTRAS = (
    "numba", "matplotlib", "jinja2", "torch", "distributed", "rasterio", "pyproj", "pvlib",
    "fastapi", "uvicorn",
)  # fmt: skip
CONSTRAINTS = ("--constraint", REPOSITORY / "constraints.txt")


def program(*command: object, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run a program that must not see the package under test."""
    hidden = ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV")
    return subprocess.run(
        list(map(str, command)),
        capture_output=True,
        text=True,
        cwd=folder,
        env={name: value for name, value in os.environ.items() if name not in hidden},
        timeout=300,
        check=False,
    )


@pytest.fixture(scope="module")
def environment(tmp_path_factory) -> Path:
    """The programs of an empty environment with the wheel and its required dependencies."""
    pytest.importorskip("hatchling", reason="hatchling, which builds the wheel, is not installed")
    folder = tmp_path_factory.mktemp("wheel")
    pip = (sys.executable, "-m", "pip")
    wheel = REPOSITORY / os.environ["PLUMECAST_WHEEL"] if "PLUMECAST_WHEEL" in os.environ else None
    if wheel is None:  # `make release` names the wheel that will be published
        build = ("wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", folder)
        built = program(*pip, *build, REPOSITORY, folder=folder)
        assert built.returncode == 0, built.stderr
        (wheel,) = folder.glob("plumecast-*.whl")
    home = folder / "environment"
    made = program(sys.executable, "-m", "venv", "--without-pip", home, folder=folder)
    assert made.returncode == 0, made.stderr
    install = ("--python", home / "bin" / "python", "install", "--no-compile", *CONSTRAINTS)
    installed = program(*pip, *install, wheel, folder=folder)
    if installed.returncode != 0:
        small = ("download", "--no-deps", "--dest", folder, *CONSTRAINTS, "threadpoolctl")
        if program(*pip, *small, folder=folder).returncode != 0:
            pytest.skip("no package index can be reached")
    assert installed.returncode == 0, installed.stderr
    return home / "bin"


def test_no_extra_is_installed(environment, tmp_path):
    code = (
        "import importlib.util\n"
        f"print([name for name in {EXTRAS} if importlib.util.find_spec(name)])\n"
        "import plumecast; print(plumecast.__version__, plumecast.__file__)"
    )
    done = program(environment / "python", "-c", code, folder=tmp_path)
    assert done.returncode == 0, done.stderr
    found, where = done.stdout.splitlines()
    assert found == "[]"
    version, path = where.split()
    assert version == __version__
    assert Path(path).is_relative_to(environment.parent)


def test_train_evaluate_and_predict_on_a_netcdf_store(environment, tmp_path):
    snapshots = make_snapshots(fires=24)
    export_snapshots(snapshots, tmp_path / "ensemble.nc")
    for arguments in (
        ["train", "ensemble.nc", "--preset", "recommended", "-o", "smoke.plume"],
        ["evaluate", "smoke.plume", "ensemble.nc"],
        ["predict", "smoke.plume", "ensemble.nc", "-o", "predicted.nc", "--footprint"],
        ["ensemble", "smoke.plume", "ensemble.nc", "-o", "statistics.nc", "--thresholds", "35"],
    ):
        done = program(environment / "plumecast", *arguments, folder=tmp_path)
        assert done.returncode == 0, done.stderr
    expected = settled(load_surrogate(tmp_path / "smoke.plume"), snapshots)
    with xr.open_dataset(tmp_path / "predicted.nc") as written:
        xr.testing.assert_allclose(
            written.smoke.drop_vars(written.smoke.coords), expected.drop_vars(expected.coords)
        )
