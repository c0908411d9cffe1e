"""Output paths are checked before the work: one line, exit code 2, nothing read and written."""

from __future__ import annotations

import os
import socket
import sys
from pathlib import Path

import pytest

import plumecast as pc
import plumecast.base.paths
from plumecast.base.errors import PlumecastError
from plumecast.base.paths import check_output
from plumecast.data.store import append_fire, export_snapshots
from support.snapshots import fires_of, make_snapshots


@pytest.fixture
def folder(tmp_path, monkeypatch, split) -> Path:
    """A folder with a store, a NetCDF file, a surrogate, an empty folder and a text file."""
    monkeypatch.chdir(tmp_path)
    fires = make_snapshots(fires=2)
    append_fire("store.zarr", fires_of(fires)[0])
    export_snapshots(fires, "fires.nc")
    pc.fit_surrogate(split.train, "paper-linear").save("smoke.plume")
    Path("folder").mkdir()
    Path("text").write_text("text")
    return tmp_path


COMMANDS = {
    "train": ["train", "fires.nc", "-o"],
    "tune": ["tune", "fires.nc", "-o"],
    "evaluate": ["evaluate", "smoke.plume", "fires.nc", "--json"],
    "predict": ["predict", "smoke.plume", "fires.nc", "-o"],
    "ensemble": ["ensemble", "smoke.plume", "fires.nc", "-o"],
    "report": ["report", "folder", "-o"],
    "simulate": ["simulate", "--preset", "demo", "-o"],
    "ingest wrf": ["ingest", "wrf", "folder", "-o"],
    "ingest rasters": ["ingest", "rasters", "text", "--unit", "h", "-o"],
    "table of fires": ["ingest", "wrf", "folder", "-o", "new.zarr", "--json"],
    "study": ["study", "all", "--data", "fires.nc", "-o"],
    "demo": ["demo", "-o"],
}
FOLDERS = ("simulate", "ingest wrf", "ingest rasters", "study", "demo")  # write folders
ENDINGS = {"predict": ".nc", "ensemble": ".nc", "simulate": ".zarr"}


def refuse(refused, folder, name, path) -> str:
    before = sorted(folder.rglob("*"))
    message = refused(*COMMANDS[name], path)
    assert sorted(folder.rglob("*")) == before, "something was written"
    return message


@pytest.mark.parametrize("name", COMMANDS)
def test_paths_that_cannot_be_written(refused, folder, name):
    """Below a file, in a folder that is closed, of the wrong kind, or an input."""
    ending = ENDINGS.get(name, "")
    expected = {f"text/new{ending}": f"cannot be written: {folder / 'text'} is not a folder"}
    if sys.platform.startswith("linux"):
        expected[f"/proc/new{ending}"] = "cannot be written: no file can be created in /proc ("
    if name in FOLDERS:
        Path(f"file{ending}").write_text("text")
        expected[f"file{ending}"] = "is a file; give the path of a folder"
    else:
        Path(f"other{ending}").mkdir()
        replaced = "exists; remove it or choose another path"
        is_folder = "is a folder; give the path of a file"
        expected[f"other{ending}"] = replaced if name in ENDINGS else is_folder
    if "fires.nc" in COMMANDS[name]:
        expected["fires.nc"] = "is an input of this command; choose another output path"
    for path, message in expected.items():
        assert refuse(refused, folder, name, path).startswith(f"{path} {message}")


def test_an_output_within_the_store_that_is_read(refused, folder):
    message = refused("train", "store.zarr", "-o", "store.zarr/smoke.plume")
    assert message.startswith("store.zarr/smoke.plume lies within store.zarr, an input of this")


def test_a_store_that_cannot_be_written(folder, monkeypatch):
    """Reading it is possible; the check tries to create a file, as permissions do not tell all."""

    def refuse_store(dir: Path) -> None:
        if Path(dir).name == "store.zarr":
            raise PermissionError(13, "Permission denied")
        return Path(os.devnull).open()

    monkeypatch.setattr(plumecast.base.paths.tempfile, "TemporaryFile", refuse_store)
    with pytest.raises(PlumecastError, match=r"created in store.zarr \(Permission denied\)"):
        check_output("store.zarr", "store")


TEXTS = {
    "evaluate": "scores",
    "tune": "settings",
    "report": "an HTML page",
    "table of fires": "a table of fires",
}
FILES = TEXTS | {"train": "a saved surrogate"}


@pytest.mark.skipif(os.name != "posix", reason="makes pipes and sockets")
@pytest.mark.parametrize("name", COMMANDS)
def test_devices_pipes_and_sockets_are_refused(refused, folder, name):
    pipe, listening = f"pipe{ENDINGS.get(name, '')}", f"socket{ENDINGS.get(name, '')}"
    os.mkfifo(pipe)
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(listening)
        for path in (pipe, listening, "/dev/zero", "/dev/null"):
            if path == "/dev/null" and name in TEXTS:
                continue  # a text may be discarded
            if path.startswith("/dev") and name in ENDINGS:
                continue  # the ending is refused
            message = refuse(refused, folder, name, path)
            assert message in (
                f"{path} is a device, a pipe or a socket; choose another output path",
                f"{path} exists; remove it or choose another path",
            )


@pytest.mark.parametrize("name", FILES)
def test_a_file_of_another_kind_is_never_replaced(refused, folder, name):
    for path in ("text", "fires.nc", "smoke.plume", "other.json"):
        Path("other.json").write_text('{"mine": 1}')
        if (path, name) == ("smoke.plume", "train") or path in COMMANDS[name]:
            continue
        before = Path(path).read_bytes()
        message = refuse(refused, folder, name, path)
        assert message == (
            f"{path} exists and is not {FILES[name]}; remove it or choose another output path"
        )
        assert Path(path).read_bytes() == before


def test_a_result_of_the_same_kind_or_an_empty_file_is_replaced(folder):
    Path("empty").touch()
    Path("scores.json").write_text('{"scores": []}')
    Path("page.html").write_text("\n<!DOCTYPE html>")
    Path("table.json").write_text("[]")
    for path, kind in (
        ("empty", "scores"),
        ("scores.json", "scores"),
        ("page.html", "an HTML page"),
        ("table.json", "a table of fires"),
        ("smoke.plume", "a saved surrogate"),
    ):
        assert check_output(path, content=kind) == Path(path)
    assert check_output("/dev/stdout", content="scores") == Path("/dev/stdout")
    assert check_output("new/deep/smoke.nc", endings=(".nc",)) == Path("new/deep/smoke.nc")
    assert not Path("new").exists()


def test_the_table_of_fires_is_never_written_into_the_store(refused, folder):
    for path in ("new.zarr", "new.zarr/table.json"):
        message = refuse(refused, folder, "table of fires", path)
        assert message == f"--json={path} is in the store of --out; choose a path outside new.zarr"


def test_statistics_that_exist_as_geotiffs_are_found_before_the_work(refused, folder):
    Path("stats_exceedance_35.tif").write_text("mine")
    message = refused(*COMMANDS["ensemble"], "stats.tif", "--thresholds", "35")
    assert message == "stats_exceedance_35.tif exists; remove it or choose another path"


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs names of any bytes")
def test_a_name_that_is_not_utf8_works_or_is_one_line(run, folder):
    """NetCDF and GeoTIFF take no such name; a file in such a folder is not called damaged."""
    odd = Path(os.fsdecode(b"caf\xe9"))
    odd.mkdir()
    Path(odd, "fires.nc").write_bytes(Path("fires.nc").read_bytes())
    expected = {
        ("info", odd / "fires.nc"): 2,
        ("predict", "smoke.plume", "fires.nc", "-o", odd / "smoke.nc"): 2,
        ("predict", "smoke.plume", "fires.nc", "-o", odd / "smoke.tif"): 2,
        ("predict", "smoke.plume", "fires.nc", "-o", odd / "smoke.zarr"): 0,
        ("train", "fires.nc", "-o", odd / "smoke.plume", "--preset", "paper-linear"): 0,
        ("info", odd / "smoke.plume"): 0,
    }
    for words, code in expected.items():
        result = run(*words)
        assert result.code == code, (words, result.err)
        assert ("has a character that is not UTF-8" in result.err) == bool(code)
        assert "Traceback" not in result.err
        assert "damaged" not in result.err
    assert {path.name for path in odd.iterdir()} == {"fires.nc", "smoke.zarr", "smoke.plume"}
