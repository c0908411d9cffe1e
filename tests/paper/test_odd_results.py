"""Names with special characters, studies that fail anyhow, results that somebody edited."""

from __future__ import annotations

import json
import re
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from markupsafe import escape

from plumecast.base.errors import PlumecastError
from plumecast.base.names import SNAPSHOT
from plumecast.data.split import split_by_fire
from plumecast.paper.context import Context
from plumecast.paper.figures import compare_maps, new_figure, plain, styled
from plumecast.paper.results import read_failures, run_studies
from plumecast.paper.shift import _matrix
from plumecast.paper.studies import STUDIES
from plumecast.report.page import write_report
from support.study_runs import SMALL, study_into, three_droughts

ODD = [
    "$", "$x^", "100 %", "a_b", "\\alpha", "<b>&", "two\nlines", "🔥 fire", "x" * 500, "\x00", "",
]  # fmt: skip


@pytest.mark.parametrize("name", ODD, ids=repr)
def test_any_name_can_be_drawn(name, tmp_path):
    drawn = plain(name)
    assert "\n" not in drawn
    assert len(drawn.replace("\\$", "$")) <= 40
    with styled():
        figure = new_figure(2.0)
        _matrix(figure.subplots(), np.eye(2), [name, "low"], [name, "low"], "IoU")
        figure.savefig(tmp_path / "figure.svg")
        some = three_droughts(ignitions=1).isel({SNAPSHOT: [0]})
        figure = compare_maps(some, {}, [0], [f"IoU 0.5\n{drawn} at 6 h"], threshold=1.0)
        figure.savefig(tmp_path / "maps.png")
    assert (tmp_path / "maps.png").stat().st_size > 1000


@pytest.mark.filterwarnings("ignore:Zarr")
def test_a_page_of_fires_with_odd_names(tmp_path):
    snapshots = three_droughts()
    names = {old: f"{old}-$x^<b>_%\\🔥" for old in np.unique(snapshots.fire_id.values)}
    odd = [names[name] for name in snapshots.fire_id.values]
    snapshots = snapshots.assign_coords(fire_id=(SNAPSHOT, odd, snapshots.fire_id.attrs))
    study_into(tmp_path, ["footprint-linear"])  # writes the description of the run
    mark = json.loads((tmp_path / "run.json").read_text())["fingerprint"]
    context = Context(split_by_fire(snapshots), fingerprint=mark, limits=SMALL)
    study = STUDIES["footprint-linear"]
    assert [i.problem for i in run_studies([study], context, tmp_path, fresh=True)] == [None]
    page = write_report(tmp_path, tmp_path / "page.html").path.read_text(encoding="utf-8")
    assert str(escape("-$x^<b>_%\\🔥")) in page
    assert "-$x^<b>" not in page


@pytest.mark.parametrize(
    "error",
    [ValueError("no\nvalue"), MemoryError(), RuntimeError("NetCDF: HDF error"), KeyError("x")],
    ids=lambda error: type(error).__name__,
)
@pytest.mark.parametrize("where", ["run", "figures"])
def test_any_failure_is_recorded_and_the_others_go_on(context, tmp_path, error, where):
    def fail(given: object) -> None:
        raise error

    good = STUDIES["footprint-linear"]
    bad = replace(STUDIES["sensitivity"], run=good.run, figures=good.figures)
    outcomes = run_studies([replace(bad, **{where: fail}), good], context, tmp_path)
    assert [bool(item.problem) for item in outcomes] == [True, False]
    assert outcomes[0].problem.startswith(type(error).__name__)
    assert "\n" not in outcomes[0].problem
    assert read_failures(tmp_path, context.fingerprint) == {"sensitivity": outcomes[0].problem}


# Results that somebody edited


@pytest.fixture(scope="module")
def finished(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("finished")
    assert study_into(folder, ["footprint-linear"])[0].problem is None
    return folder


@pytest.fixture
def folder(finished, tmp_path) -> Path:
    return Path(shutil.copytree(finished, tmp_path / "results"))


def edit(path: Path, **changes: object) -> None:
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


@pytest.mark.parametrize("name", ["/etc/hostname", "../secret", "roc/../../secret", "nothing", 7])
def test_a_record_cannot_name_figures_elsewhere(folder, name):
    (folder / "secret.svg").write_text("secret")
    edit(folder / "footprint-linear" / "record.json", figures=[name])
    with pytest.raises(PlumecastError, match=r"names the figure .* run the study again"):
        write_report(folder, folder / "page.html")
    assert not (folder / "page.html").exists()


def test_a_figure_cannot_be_a_link_to_elsewhere(folder, tmp_path):
    (tmp_path / "secret").write_text("secret")
    figure = next((folder / "footprint-linear").glob("*.svg"))
    figure.unlink()
    figure.symlink_to(tmp_path / "secret")
    with pytest.raises(PlumecastError, match="names the figure"):
        write_report(folder, folder / "page.html")


REFUSED = [
    *(("run.json", text, r"run\.json .*; remove it or choose another folder$")
      for text in ("", "[]", "{}", "[" * 100_000, '{"fingerprint": 3}', "\x00")),
    *(("run.json", changes, "was changed and is not complete")
      for changes in ({"parts": 3}, {"recipe": None}, {"by": None, "parts": []})),
    *(("footprint-linear/record.json", changes, "was changed and is not complete")
      for changes in ({"seconds": "long"}, {"figures": 3}, {"cpu_seconds": []})),
    ("footprint-linear/table.nc", b"junk", r"table\.nc cannot be read \(.*run the study again"),
]  # fmt: skip
"""A file, its new content or changes of its record, and what the refusal says."""


@pytest.mark.parametrize(("name", "content", "message"), REFUSED, ids=range(len(REFUSED)))
def test_files_that_somebody_edited_are_refused_by_name(refused, folder, name, content, message):
    path = folder / name
    if isinstance(content, dict):
        edit(path, **content)
    else:
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    assert re.search(message, refused("report", folder, "-o", folder / "page.html"))
