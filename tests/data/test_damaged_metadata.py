"""Damaged or hand-edited stores: one line with the path, and no memory for absurd shapes."""

from __future__ import annotations

import json

import pytest

from plumecast.data.store import export_snapshots
from support.snapshots import make_snapshots

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
