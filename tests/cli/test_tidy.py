"""`plumecast tidy` says what it frees, and frees nothing on a dry run."""

from __future__ import annotations

from plumecast.data.store import append_fire, stored_fires
from support.snapshots import fires_of, make_snapshots


def test_tidy_says_what_it_frees(tmp_path, succeed):
    store = tmp_path / "store.zarr"
    for fire in fires_of(make_snapshots(fires=2)):
        append_fire(store, fire)
    half = store / "chunks" / "ABCDEFGHIJ#1"
    half.write_bytes(bytes(30_000))
    line = f"0.03 MB: 1 file of {store} that no version needs\n"
    assert succeed("tidy", store, "--dry-run") == f"would free {line}"
    assert half.exists()
    assert succeed("tidy", store) == f"freed {line}"
    assert not half.exists()
    assert succeed("tidy", store) == f"nothing of {store} is left over\n"
    assert "1 earlier version removed" in succeed("tidy", store, "--old-versions")
    assert len(stored_fires(store)) == 2
