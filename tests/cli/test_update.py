"""`plumecast update`: lines that it prints, files that it keeps, input that it refuses."""

from __future__ import annotations

import shutil
import subprocess
import sys

import numpy as np
import pytest

import plumecast as pc
import plumecast.cli.commands.update as update_command
from support.snapshots import make_snapshots


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A store of six ignitions, the same with two more, and a surrogate of the first."""
    where = tmp_path_factory.mktemp("update")
    data = make_snapshots(fires=16)
    known = np.isin(data.ignition_id.values, np.unique(data.ignition_id.values)[:6])
    pc.export_snapshots(data.isel(snapshot=known), where / "old.nc")
    pc.export_snapshots(data, where / "all.nc")
    options = {"split": None, "updatable": True}
    pc.train_surrogate(where / "old.nc", "paper-linear", **options).save(where / "smoke.plume")
    return where


def test_new_ignitions_are_taken_in_and_said(folder, succeed, run):
    new = folder / "new.plume"
    printed = succeed("update", folder / "smoke.plume", folder / "all.nc", "-o", new)
    assert "ignition-06: 2 fires, 8 snapshots; predicted before, IoU 0." in printed
    assert "kept from the fit: penalties, thresholds" in printed
    assert "error bars calibrated on 8 ignitions" in printed
    assert "four more ignitions: IoU 0." in printed
    assert f"wrote the surrogate of 8 ignitions to {new}" in printed
    assert len(pc.load_surrogate(new).training["fire_id"]) == 16
    again = run("update", folder / "smoke.plume", folder / "all.nc", "-o", new)
    assert again.code == 2
    assert f"{new} contains the fires of" in again.err
    assert "there is no new fire: 16 fires of the store are in the surrogate already" in again.err


def test_ctrl_c_keeps_what_was_taken_in(folder, run, monkeypatch):
    """The store is looked at twice; then comes Ctrl-C. Run again, the command goes on."""
    out = folder / "watched.plume"

    def two_looks(path, every, fields):
        data = pc.open_snapshots(path, fields=fields)
        yield data.isel(snapshot=data.ignition_id.values < "ignition-07")
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(update_command, "watch_store", two_looks)
        stopped = run("update", folder / "smoke.plume", folder / "all.nc", "-o", out, "--watch")
    assert stopped.code == 130
    assert f"{out} has learned from 1 ignition; run again to go on" in stopped.err
    assert len(pc.load_surrogate(out).training["ignition_id"]) == 7
    again = run("update", folder / "smoke.plume", folder / "all.nc", "-o", out)
    assert again.code == 0
    assert "ignition-06" not in again.out
    assert "ignition-07: 2 fires" in again.out


def test_a_second_update_of_one_file_is_refused_while_the_first_works(
    folder, tmp_path, run, monkeypatch
):
    """Each would write what it read plus its own fires: those of the other would be lost."""
    model = shutil.copy(folder / "smoke.plume", tmp_path)
    words = [sys.executable, "-m", "plumecast", "update", model, str(folder / "all.nc")]
    others = []
    take_in_fires = update_command.take_in_fires

    def beside_another(*arguments, **options):
        for number, taken in enumerate(take_in_fires(*arguments, **options)):
            if number == 0:
                others.append(subprocess.run(words, capture_output=True, text=True, check=False))
            yield taken

    monkeypatch.setattr(update_command, "take_in_fires", beside_another)
    assert run("update", model, folder / "all.nc").code == 0
    assert [other.returncode for other in others] == [2]
    assert others[0].stderr == (
        f"error: {model} is being written by another process; wait until it has finished\n"
    )
    assert len(pc.load_surrogate(model).training["fire_id"]) == 16


def test_a_file_that_another_program_wrote_meanwhile_is_not_replaced(
    folder, tmp_path, run, monkeypatch
):
    model = shutil.copy(folder / "smoke.plume", tmp_path)
    take_in_fires = update_command.take_in_fires

    def while_written(*arguments, **options):
        pc.load_surrogate(folder / "smoke.plume").save(model)
        return take_in_fires(*arguments, **options)

    monkeypatch.setattr(update_command, "take_in_fires", while_written)
    result = run("update", model, folder / "all.nc")
    assert result.code == 2
    assert f"error: {model} was changed by another program since it was read" in result.err
    assert len(pc.load_surrogate(model).training["fire_id"]) == 12


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--refit-after", 0], "--refit-after=0 must be at least 1"),
        (["--more", 0], "--more=0 must be at least 1"),
        (["--target", 1.5], "--target=1.5 must be an IoU below 1"),
        (["--every", 0], "--every=0 must be above 0"),
        (["--training", "old.nc"], "--training=old.nc is read for --refit-after; give both"),
    ],
)
def test_wrong_options_are_refused(folder, run, options, words):
    result = run("update", folder / "smoke.plume", folder / "all.nc", *options)
    assert result.code == 2
    assert words in result.err


def test_a_surrogate_without_sums_names_the_command(folder, run):
    plain = pc.fit_surrogate(pc.open_snapshots(folder / "old.nc"), "paper-linear")
    plain.save(folder / "plain.plume")
    result = run("update", folder / "plain.plume", folder / "all.nc")
    assert result.code == 2
    assert "plumecast train STORE --updatable" in result.err
