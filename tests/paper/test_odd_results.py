"""Names with special characters, studies that fail anyhow, results that somebody edited."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from markupsafe import escape

from plumecast.base.errors import PlumecastError
from plumecast.base.names import SNAPSHOT
from plumecast.paper.context import Context, Study, tidy
from plumecast.paper.figures import compare_maps, new_figure, plain, styled
from plumecast.paper.results import STUDIES, read_failures, run_studies
from plumecast.paper.shift import _matrix
from plumecast.report.page import write_report
from support.study_runs import study_into, three_droughts

ODD = [
    "$", "$x^", "100 %", "a_b", "\\alpha", "<b>&", "two\nlines", "🔥 fire", "x" * 500, "\x00", "",
]  # fmt: skip


def test_any_name_can_be_drawn(tmp_path):
    drawn = [plain(name) for name in ODD]
    assert "\n" not in "".join(drawn)
    assert max(len(name.replace("\\$", "$")) for name in drawn) <= 40
    with styled():
        figure = new_figure(4.0)
        _matrix(figure.subplots(), np.eye(len(ODD)), ODD, ODD, "IoU")
        figure.savefig(tmp_path / "figure.svg")
        some = three_droughts(ignitions=4).isel({SNAPSHOT: range(len(ODD))})
        titles = [f"IoU 0.5\n{name} at 6 h" for name in drawn]
        compare_maps(some, {}, range(len(ODD)), titles, threshold=1.0).savefig(tmp_path / "m.png")
    assert (tmp_path / "m.png").stat().st_size > 1000


@pytest.mark.filterwarnings("ignore:Zarr")
def test_a_page_of_fires_with_odd_names(tmp_path):
    snapshots = three_droughts()
    odd = [f"{name}-$x^<b>_%\\🔥" for name in snapshots.fire_id.values]
    named = snapshots.assign_coords(fire_id=(SNAPSHOT, odd, snapshots.fire_id.attrs))
    _, outcomes = study_into(tmp_path, ["footprint-linear"], named)
    assert [item.problem for item in outcomes] == [None]
    page = write_report(tmp_path, tmp_path / "page.html").path.read_text(encoding="utf-8")
    assert str(escape("-$x^<b>_%\\🔥")) in page
    assert "-$x^<b>" not in page


def constant(name: str) -> Study:
    """A study under a name of the registry that has a table and no figures."""
    finding = tidy([{"value": 1.0}], {"value": ("value", "1")})
    return replace(STUDIES[name], run=lambda context: finding, figures=lambda finding: {})


@pytest.mark.parametrize(
    "error",
    [ValueError("no\nvalue"), MemoryError(), RuntimeError("NetCDF: HDF error"), KeyError("x")],
    ids=lambda error: type(error).__name__,
)
@pytest.mark.parametrize("where", ["run", "figures"])
def test_any_failure_is_recorded_and_the_others_go_on(split, tmp_path, error, where):
    def fail(argument: object) -> None:
        raise error

    studies = [replace(constant("sensitivity"), **{where: fail}), constant("footprint-linear")]
    outcomes = run_studies(studies, Context(split), tmp_path)
    assert [bool(item.problem) for item in outcomes] == [True, False]
    assert re.fullmatch(rf"{type(error).__name__}.*", outcomes[0].problem)
    assert read_failures(tmp_path, "") == {"sensitivity": outcomes[0].problem}


RECORD, TABLE = "footprint-linear/record.json", "footprint-linear/table.nc"
REFUSED = [
    *(("run.json", text, r"run\.json .*; remove it or choose another folder$")
      for text in ("", "[]", "{}", "[" * 100_000, '{"fingerprint": 3}', "\x00")),
    *(("run.json", changes, "was changed and is not complete")
      for changes in ({"parts": 3}, {"recipe": None}, {"by": None, "parts": []})),
    *((RECORD, changes, "was changed and is not complete")
      for changes in ({"seconds": "long"}, {"figures": 3}, {"cpu_seconds": []})),
    *((RECORD, {"figures": [name]}, r"names the figure .* run the study again")
      for name in ("/etc/hostname", "../secret", "roc/../../secret", "nothing", 7)),
    (TABLE, "junk", r"table\.nc cannot be read \(.*run the study again"),
]  # fmt: skip
"""A file, its new content or changes of its record, and what the refusal says."""


@pytest.mark.parametrize(("name", "content", "message"), REFUSED, ids=range(len(REFUSED)))
def test_files_that_somebody_edited_are_refused_by_name(
    refused, some_results, name, content, message
):
    folder = some_results("footprint-linear")
    (folder / "secret.svg").write_text("secret")
    path = folder / name
    if isinstance(content, dict):
        content = json.dumps(json.loads(path.read_text()) | content)
    path.write_text(content)
    assert re.search(message, refused("report", folder, "-o", folder / "page.html"))
    assert not (folder / "page.html").exists()


def test_a_figure_cannot_be_a_link_to_elsewhere(some_results, tmp_path):
    folder = some_results("footprint-linear")
    (tmp_path / "secret").write_text("secret")
    figure: Path = next((folder / "footprint-linear").glob("*.svg"))
    figure.unlink()
    figure.symlink_to(tmp_path / "secret")
    with pytest.raises(PlumecastError, match="names the figure"):
        write_report(folder, folder / "page.html")
