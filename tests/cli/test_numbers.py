"""Every number of every option of every command: a legitimate run, or one line and exit code 2."""

from __future__ import annotations

import inspect
from pathlib import Path

import pytest

import plumecast as pc
import plumecast.cli.commands.study
from plumecast.cli import COMMANDS, command_module
from plumecast.data.store import export_snapshots
from support.raster_files import fire, write_ascii
from support.snapshots import make_snapshots
from support.wrf_files import write_run

CALLS = {
    "train": ["fires.nc", "--preset", "paper-linear", "-o", "out.plume"],
    "tune": ["fires.nc", "--families", "coded", "--degrees", "1", "--kernels", "",
             "--std-fractions", "0.5", "-o", "out.json"],
    "evaluate": ["smoke.plume", "fires.nc", "--baselines", "none", "-o", "out.json"],
    "predict": ["smoke.plume", "a.asc", "--unit", "min", "--crs", "local", "-o", "out.nc"],
    "ensemble": ["smoke.plume", "fires.nc", "-o", "out.nc"],
    "simulate": ["--preset", "demo", "--ignitions", "1", "--droughts", "low", "--checkpoints", "1",
                 "--workers", "1", "-o", "out.zarr"],
    "ingest wrf": ["run", "--workers", "1", "-o", "out.zarr"],
    "ingest rasters": ["a.asc", "--unit", "min", "-o", "out.zarr"],
    "study": ["footprint-linear", "--data", "fires.nc", "-o", "out"],
    "demo": ["-o", "out"],
    "impact": ["fires.nc", "--points", "plants.csv", "--ignition-time", "2020-09-08T12:00",
               "-o", "out.csv"],
    "compare": ["low=fires.nc@low", "high=fires.nc@high", "-o", "out.nc"],
    "map": ["fires.nc", "-o", "out.png"],
    "design": ["fires.nc", "-n", "2", "-o", "out.csv"],
    "update": ["sums.plume", "more.nc", "-o", "out.plume"],
}  # fmt: skip
RUNS_ON = ("serve",)  # until it is stopped; its numbers are tested in tests/app/server
VALUES = ("-1", "nan", "99999999999999999999")
LISTS = ("hours", "fractions", "thresholds", "quantiles", "std_fractions", "degrees")
WITH = {"wind_speed": ["--wind-from=270"], "wind_from": ["--wind-speed=5"]}


def function_of(name: str) -> object:
    command, _, sub = name.partition(" ")
    module = command_module(command)
    is_own = module.__name__.endswith(command)
    return getattr(module, sub or ("command" if is_own else command))


def numeric_options(name: str) -> list[str]:
    parameters = inspect.signature(function_of(name), eval_str=True).parameters.values()
    return [p.name for p in parameters if p.annotation in (int, float) or p.name in LISTS]


@pytest.fixture
def files(tmp_path, monkeypatch) -> Path:
    monkeypatch.chdir(tmp_path)
    snapshots = make_snapshots(fires=12, checkpoints=2, shape=(6, 8))
    export_snapshots(snapshots, "fires.nc")
    pc.fit_surrogate(snapshots, "paper-linear").save("smoke.plume")
    first = snapshots.fire_id.isin(sorted(set(snapshots.fire_id.values))[:11]).values
    export_snapshots(snapshots.isel(snapshot=~first), "more.nc")
    pc.fit_surrogate(snapshots.isel(snapshot=first), "paper-linear", updatable=True).save(
        "sums.plume"
    )
    write_run(Path("run"), range(2))
    write_ascii(Path("a.asc"), fire())
    Path("plants.csv").write_text("name,x,y,megawatts\na,9000,9000,10\n")
    monkeypatch.setattr(plumecast.cli.commands.study, "run_studies", lambda *a, **b: [])
    return tmp_path


def test_no_command_with_numbers_is_forgotten():
    tried = {name.split()[0] for name in CALLS}
    others = [name for name in COMMANDS if name not in tried and name not in RUNS_ON]
    assert [name for name in others if numeric_options(name)] == []


@pytest.mark.parametrize("name", CALLS)
def test_a_number_is_taken_or_refused_in_one_line(run, files, name):
    wrong = []
    for option in numeric_options(name):
        for value in VALUES:
            call = f"--{option.replace('_', '-')}={value}"
            before = {path for path in files.iterdir() if path.name.startswith("out")}
            result = run(*name.split(), *CALLS[name], call, *WITH.get(option, ()))
            lines = [line for line in result.err.splitlines() if line.startswith("error:")]
            written = [p for p in files.iterdir() if p.name.startswith("out") and p not in before]
            for path in written:
                path.rename(files / f"kept-{len(list(files.iterdir()))}")
            refused = result.code == 2 and len(lines) == 1
            if not refused and result.code not in (0, 1):
                wrong.append(f"{call}: {result.code} {result.err}")
            if value == "nan" and option != "nodata" and not refused:
                wrong.append(f"{call} was taken: {result.code} {result.err}")
    assert wrong == []


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (["train", "fires.nc", "--seed=-1"], "--seed=-1; give at least 0"),
        (["ensemble", "smoke.plume", "fires.nc", "-o", "a.nc", "--batch=-1"],
         "--batch=-1; give at least 1"),
        (["ingest", "wrf", "run", "-o", "a.zarr", "--floor=inf"],
         "--floor=inf is not a finite number; give another value"),
        (["train", "fires.nc", "--penalty=1e400"],
         "--penalty=inf is not a finite number; give another value"),
        (["ensemble", "smoke.plume", "fires.nc", "-o", "a.nc", "--thresholds=35,nan"],
         "--thresholds=nan is not a finite number; give another value"),
        (["train", "fires.nc", "--seed=99999999999999999999"],
         "--seed=99999999999999999999 is too large; give at most 9223372036854775807"),
    ],
    ids=lambda value: value[-1] if isinstance(value, list) else "",
)  # fmt: skip
def test_messages(refused, files, call, message):
    assert refused(*call) == message
