"""Files that version 0.1.0 wrote load, and predict what they predicted then.

The folder v0_1_0 holds one file of every kind of operator, the snapshots they were fitted to, and
the predictions of version 0.1.0. Networks there are smaller than those that are trained by default.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import plumecast as pc
from plumecast.surrogate.file import read_header

FILES = Path(__file__).parent / "v0_1_0"
MODELS = sorted(FILES.glob("*.plume"))
NETWORKS = ("unet", "fno")

# Products of float64 and float32 matrices are rounded in another order by another BLAS.
SAME = 1e-5  # of the largest prediction


@pytest.fixture(scope="module")
def snapshots():
    return pc.open_snapshots(FILES / "snapshots.nc").load()


@pytest.fixture(scope="module")
def expected():
    with np.load(FILES / "expected.npz") as file:
        return {name: file[name] for name in file.files}


def test_every_kind_of_operator_is_there():
    assert len(MODELS) == 13


@pytest.mark.parametrize("path", MODELS, ids=lambda path: path.stem)
def test_an_old_file_predicts_what_it_did(path, snapshots, expected):
    if path.stem in NETWORKS:
        pytest.importorskip("torch")
    assert read_header(path)["version"] == "0.1.0"
    surrogate = pc.load_surrogate(path)
    smoke = expected[path.stem]
    np.testing.assert_allclose(surrogate.predict(snapshots), smoke, atol=SAME * smoke.max())
    if surrogate.detects:
        score = expected[f"{path.stem}_score"]
        np.testing.assert_allclose(surrogate.predict_footprint(snapshots), score, atol=SAME)
    else:
        assert f"{path.stem}_score" not in expected


@pytest.mark.parametrize("path", MODELS, ids=lambda path: path.stem)
def test_an_old_file_saved_again_is_the_same(path, snapshots, tmp_path):
    if path.stem in NETWORKS:
        pytest.importorskip("torch")
    old = pc.load_surrogate(path)
    new = pc.load_surrogate(old.save(tmp_path / path.name))
    np.testing.assert_array_equal(new.predict(snapshots), old.predict(snapshots))
    assert new.settings == old.settings
