"""The tutorials: their cells run as they stand, in an empty folder, and show what the text says."""

from __future__ import annotations

import re

import pytest

from support.places import REPOSITORY
from support.tutorials import FOLDER, run_tutorial, tutorials

pytestmark = pytest.mark.filterwarnings("ignore::plumecast.data.covariates.ExtrapolationWarning")


@pytest.fixture
def follow(run, tmp_path, monkeypatch):
    """Run a tutorial in an empty folder, without windows; returns what it printed."""
    plt = pytest.importorskip("matplotlib.pyplot")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("FORCE_COLOR", "")  # as pages with commands set them
    monkeypatch.setenv("COLUMNS", "150")
    with plt.rc_context({"backend": "Agg", "figure.max_open_warning": 0}):
        yield lambda name: run_tutorial(name, run)
    plt.close("all")


def test_every_tutorial_is_listed_and_tested():
    listed = (FOLDER / "index.md").read_text(encoding="utf-8")
    tested = (REPOSITORY / "tests" / "e2e" / "test_tutorials.py").read_text(encoding="utf-8")
    for name in tutorials():
        assert f"\n{name.removesuffix('.md')}\n" in listed, f"{name} is not in the list"
        assert f'follow("{name}")' in tested, f"no test runs {name}"


def errors_of(printed: str, line: str) -> list[float]:
    """The numbers with a decimal point in the line that begins so."""
    return [float(number) for number in re.findall(r"\d\.\d+", re.search(line + ".*", printed)[0])]


def test_the_method_by_hand(follow):
    printed = follow("method-by-hand.md")  # each result is asserted on the page
    linear, quadratic, spectral = errors_of(printed, r"linear \d")
    assert spectral < 0.1 < linear < quadratic
    codes, shared = errors_of(printed, "5 ignitions")
    assert shared < 0.1 < linear < codes


def test_from_nothing_to_a_smoke_map(follow, tmp_path):
    pytest.importorskip("numba")
    printed = follow("first-smoke-map.md")
    (iou, error), (mean, _), (nearest, _) = (
        errors_of(printed, name) for name in ("surrogate  ", "mean-field", "nearest-fire")
    )
    assert iou > 2 * max(mean, nearest), "it finds the plume, and the opponents do not"
    assert error < 0.6
    assert (tmp_path / "map.html").stat().st_size > 0


def test_your_own_operator(follow):
    pytest.importorskip("numba")
    printed = follow("your-own-operator.md")
    lines = ("ridge", "mean field", "nearest fire", "recommended", "local")
    ridge, mean, nearest, best, local = (errors_of(printed, rf"{name}.* \d\.") for name in lines)
    assert ridge[1] < min(mean[1], nearest[1]) < best[1], "IoU"
    assert local[1] <= max(mean[1], nearest[1]), "no better than the baselines"
    assert best[2] < local[2] < ridge[2], "relative error"


def test_wrf_runs_to_a_surrogate(follow):
    printed = follow("wrf-to-surrogate.md")
    assert "6 fires: 6 read, 0 skipped, 0 failed" in printed
    assert "each predicted by a fit without it" in printed
    assert printed.count(": at most ") == 6


def test_a_planners_day(follow):
    pytest.importorskip("numba")
    pytest.importorskip("pvlib")
    printed = follow("planners-day.md")
    assert "beats the mean field and the nearest fire" in printed
    shares = re.findall(r"in (\d+)% to (\d+)% of such fires", printed)
    assert len(shares) == 4, "three towns and all people"
    assert max(int(low) for low, _ in shares) < 50, "a minority of cases"
    assert max(int(low) for low, _ in shares) < min(int(high) for _, high in shares), "overlap"
    assert printed.count("not settled") == 4, "three towns and all people"
    assert "not the error of the surrogate" in printed
