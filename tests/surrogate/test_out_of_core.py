"""Blocks of snapshots give the result of all at once, within a memory limit that is kept."""

from __future__ import annotations

import importlib
import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

from plumecast.base.errors import PlumecastError
from plumecast.base.names import TABLE
from plumecast.compute.blocks import Passes
from plumecast.compute.resources import Budget, Resources, parse_memory
from plumecast.data.lazy_store import is_loaded
from plumecast.data.schema import apply_smoke_floor
from plumecast.data.split import Split, split_by_fire
from plumecast.data.store import append_fire, open_snapshots
from plumecast.operators.coded.fit import pca_rows
from plumecast.operators.lift import fit_lift
from plumecast.operators.neural import map as neural
from plumecast.operators.pca import Truncation, fit_truncated_basis
from plumecast.operators.spectral.fit import rows_at_once
from plumecast.scores.footprint import smoke_threshold
from plumecast.surrogate.baselines import fit_baseline
from plumecast.surrogate.fit import fit_surrogate
from plumecast.surrogate.load import load_surrogate
from plumecast.surrogate.surrogate import Surrogate
from plumecast.workflows.evaluate import evaluate
from plumecast.workflows.predict import predict_store
from support.quantities import settled
from support.snapshots import make_snapshots

ROUNDING = 1e-9  # relative: sums in another order, then an eigendecomposition


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    path = tmp_path_factory.mktemp("store") / "ensemble.zarr"
    append_fire(path, windy(make_snapshots(fires=20, checkpoints=5)))
    return path


def windy(snapshots: xr.Dataset) -> xr.Dataset:
    """With a wind of its own for every snapshot."""
    turn = np.random.default_rng(5).uniform(-40.0, 40.0, snapshots.sizes["snapshot"])
    wind = {"wind_speed": 5.0 + 0.02 * turn, "wind_from_direction": (270.0 + turn) % 360.0}
    return snapshots.assign_coords(
        {
            name: ("snapshot", values.astype(np.float32), {"units": TABLE[name].units})
            for name, values in wind.items()
        }
    )


@pytest.mark.parametrize("shape", [(30, 12), (12, 30)])
@pytest.mark.parametrize("center", [False, True])
@pytest.mark.parametrize("block", [1, 7, 100])
def test_bases_of_any_blocks_are_equal(shape, center, block):
    fields = np.random.default_rng(0).normal(size=shape) + 1.0
    rule = Truncation(std_fraction=0.8)
    one = fit_truncated_basis(fields, rule, center)
    other = fit_truncated_basis(fields, rule, center, Passes(block))
    np.testing.assert_allclose(other.modes, one.modes, atol=ROUNDING)
    np.testing.assert_allclose(other.spectrum**2, one.spectrum**2, atol=ROUNDING)
    assert (other.mean is None) is (one.mean is None)


def test_modes_that_blocks_do_not_resolve_are_refused():
    rng = np.random.default_rng(0)
    fields = rng.normal(size=(20, 6)) * np.array([1.0, 1.0, 1.0, 1.0, 1.0, 1e-9])
    assert fit_truncated_basis(fields, Truncation(rank=6)).rank == 6
    with pytest.raises(PlumecastError, match="cannot be computed by blocks of snapshots"):
        fit_truncated_basis(fields, Truncation(rank=6), passes=Passes(5))


CHOICES = {
    "linear": {"preset": "paper-linear"},
    "centred": {"preset": "paper-linear", "center": True},
    "primal": {"degree": 2, "fire_rank": 4, "smoke_rank": 5},
    "intercept": {"degree": 2, "fire_rank": 4, "smoke_rank": 5, "center": True},
    "dual": {"degree": 2, "fire_rank": 9, "smoke_rank": 5},
    "kernel": {"kernel": "matern-5/2", "fire_rank": 9, "smoke_rank": 5},
}


@pytest.mark.parametrize(
    ("choice", "memory"),
    [
        *((choice, "250kB" if choice == "kernel" else "170kB") for choice in CHOICES),
        ("dual", "2MB"),
        ("linear", "75kB"),
        ("centred", "75kB"),
    ],
)
def test_fit_from_a_store_equals_the_fit_in_memory(store, parts, choice, memory):
    one = fit_surrogate(parts.train, **CHOICES[choice])
    lazy = split_by_fire(open_snapshots(store), seed=2)
    limit = Resources(memory=memory)
    other = fit_surrogate(lazy.train, resources=limit, **CHOICES[choice])
    assert not is_loaded(lazy.train.smoke.variable)
    if memory != "2MB":  # the limits make blocks, or the whole is compared with itself
        count = lazy.train.sizes["snapshot"]
        assert pca_rows(Budget(limit=parse_memory("75kB")), (count, 80)) < count / 2
    expected = one.predict(parts.test).values
    np.testing.assert_allclose(
        other.predict(parts.test).values, expected, atol=1e-6 * expected.max()
    )  # stored in float32
    assert other.training["fire_rank"] == one.training["fire_rank"]
    assert other.training["penalty"] == pytest.approx(one.training["penalty"], rel=1e-8)


@pytest.fixture(scope="module")
def parts(store) -> Split:
    return split_by_fire(open_snapshots(store).load(), seed=2)


@pytest.mark.parametrize(("memory", "frame"), [("70MB", "map"), ("70MB", "wind"), ("1GB", "map")])
def test_spectral_fit_from_a_store_equals_the_fit_in_memory(store, parts, memory, frame):
    choices = {"preset": "recommended", "layers": 1, "correction": True, "frame": frame}
    one = fit_surrogate(parts.train, **choices)
    lazy = split_by_fire(open_snapshots(store), seed=2)
    other = fit_surrogate(lazy.train, resources=Resources(memory=memory), **choices)
    assert not is_loaded(lazy.train.smoke.variable)
    for a, b in zip(other.predict_both(parts.test), one.predict_both(parts.test), strict=True):
        np.testing.assert_allclose(a, b, atol=1e-3 * float(b.max()))  # systems in float32
    assert other.training["footprint_threshold"] == one.training["footprint_threshold"]
    assert other.training["leave_out_error"] == pytest.approx(
        one.training["leave_out_error"], rel=1e-3
    )


LIFTED = {
    "primal": {"degree": 2, "fire_rank": 4, "smoke_rank": 5},
    "centred": {"degree": 1, "fire_rank": 6, "smoke_rank": 5, "center": True},
    "dual": {"degree": 2, "fire_rank": 9, "smoke_rank": 5},
    "kernel": {"kernel": "matern-5/2", "fire_rank": 9, "smoke_rank": 5},
    "covariates": {"degree": 1, "fire_rank": 6, "smoke_rank": 5, "covariates": ["wind_speed"]},
    "wind": {"degree": 1, "fire_rank": 6, "smoke_rank": 5, "frame": "wind"},
}


@pytest.mark.parametrize("choice", LIFTED)
def test_coded_fit_of_lifted_fields_from_a_store_equals_the_fit_in_memory(store, parts, choice):
    lift = {"lift": ["identity", "burned"], "products": ["hours"], "age_bins": 3}
    choices = {**lift, "targets": ["log", "smoke", "footprint"], **LIFTED[choice]}
    one = fit_surrogate(parts.train, **choices)
    lazy = split_by_fire(open_snapshots(store), seed=2)
    other, limit = fit_tightly(lazy.train, choices)
    count, cells = parts.train.sizes["snapshot"], parts.train.smoke[0].size
    block = pca_rows(Budget(limit=limit), (count, 4 * cells))
    assert block < count or choice == "wind"  # whose canvas is larger
    assert not is_loaded(lazy.train.smoke.variable)
    for a, b in zip(other.predict_both(parts.train), one.predict_both(parts.train), strict=True):
        np.testing.assert_allclose(a, b, atol=1e-6 * float(b.max()))  # stored in float32
    for name in ("footprint_threshold", "leave_out_error"):
        assert other.training[name] == pytest.approx(one.training[name], rel=1e-6)


SMALL_NETWORKS = {
    "unet": {"width": 8, "levels": 1},
    "fno": {"width": 4, "modes": 3, "layers": 1},
}


@pytest.mark.parametrize("family", SMALL_NETWORKS)
def test_a_network_trained_from_a_store_equals_the_one_in_memory(
    tmp_path, monkeypatch, one_thread, family
):
    samples = importlib.import_module("plumecast.operators.neural.training").StoredSamples
    monkeypatch.setitem(neural.SIZES, family, SMALL_NETWORKS[family])
    path = tmp_path / "ensemble.zarr"
    append_fire(path, windy(make_snapshots(fires=40, checkpoints=5)))
    split = split_by_fire(open_snapshots(path), seed=2)
    choices = {"family": family, "epochs": 1}
    one = fit_surrogate(split.train.load(), **choices)
    lazy = split_by_fire(open_snapshots(path), seed=2)
    held: list[int] = []
    read = samples.read
    monkeypatch.setattr(
        samples, "read", lambda stored, rows: held.append(rows.size) or read(stored, rows)
    )
    tight, _ = fit_tightly(lazy.train, choices)
    assert max(held) < split.train.sizes["snapshot"]
    assert not is_loaded(lazy.train.smoke.variable)
    roomy = fit_surrogate(lazy.train, resources=Resources(memory="1GB"), **choices)
    assert held[-1] == split.train.sizes["snapshot"]
    for network in (tight, roomy):
        for name, weights in one.operator.field_map.weights.items():
            # The same batches in the same order; float32 sums over other blocks for the scales.
            stored = network.operator.field_map.weights[name]
            np.testing.assert_allclose(stored, weights, atol=1e-5)
        for name in ("footprint_threshold", "leave_out_error"):
            assert network.training[name] == pytest.approx(one.training[name], rel=1e-4)


def fit_tightly(train: xr.Dataset, choices: dict) -> tuple[Surrogate, int]:
    """A fit within the limit that refusals name, raised until none comes: it must be enough."""
    limit = 1000
    while True:
        try:
            return fit_surrogate(train, resources=Resources(memory=limit), **choices), limit
        except PlumecastError as error:
            refusal = str(error)
        named = re.search(r"needs at least ([\d.e+]+ [kMG]B)", refusal)
        assert named, refusal
        larger = int(1.01 * parse_memory(named.group(1)))  # shown with three digits
        assert larger > limit, refusal
        limit = larger


def test_blocks_of_a_spectral_fit_shrink_with_the_limit():
    rng = np.random.default_rng(4)
    lift = fit_lift(rng.random((40, 12, 10)))
    plan = {"shape": (40, 3, 12, 10), "frequencies": 200, "lift": lift, "layers": 3}
    rows = [rows_at_once(limit, **plan, sums=(8, 8)) for limit in (80e6, 60e6, 56e6)]
    assert rows[0] == 40
    assert rows[0] > rows[1] > rows[2] >= 1
    with pytest.raises(PlumecastError, match=r"23 channels on 200 frequencies needs at least"):
        rows_at_once(10e6, **plan, sums=(8, 8))


def test_scores_and_predictions_from_a_store_equal_those_in_memory(store, parts):
    surrogate = fit_surrogate(parts.train, "paper-linear")
    one = evaluate({"a": surrogate}, parts.validation, parts.test)
    lazy = split_by_fire(open_snapshots(store), seed=2)
    tight = Resources(memory="100kB")
    other = evaluate({"a": surrogate}, lazy.validation, lazy.test, resources=tight)
    xr.testing.assert_allclose(other.details["a"], one.details["a"], rtol=1e-12)
    assert other.smoke_threshold == one.smoke_threshold
    assert other.scores[0].decision_threshold == one.scores[0].decision_threshold
    blocks = list(predict_store(surrogate, store, resources=tight))
    joined = np.concatenate([block.smoke.values for block in blocks])
    expected = settled(surrogate, open_snapshots(store)).values
    np.testing.assert_allclose(joined, expected, rtol=1e-5)  # float32 of other products
    assert len(blocks) > 1
    mean = fit_baseline("mean-field", lazy.train, resources=Resources(memory="1MB")).operator.mean
    np.testing.assert_allclose(mean, parts.train.smoke.values.mean(axis=0, dtype=float).ravel())


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("captured", [0.05, 0.5, 0.95])
def test_smoke_threshold_by_bits_equals_sorting(dtype, captured):
    rng = np.random.default_rng(3)
    rows = np.exp(rng.normal(size=(300, 20), scale=5.0)).astype(dtype)
    rows[rng.random(rows.shape) < 0.4] = 0.0
    rows[7] = 0.0
    rows = np.where(rng.random(rows.shape) < 0.2, np.round(rows), rows).astype(dtype)
    smoky = rows[(rows > 0).any(axis=1)]
    values, counts = np.unique(smoky[smoky > 0]), (smoky > 0).sum(axis=1)
    shares = np.array([np.mean((smoky > value).sum(axis=1) / counts) for value in values])
    kept = values[shares > captured + 1e-12]
    assert smoke_threshold(rows, captured) == (float(kept[-1]) if kept.size else 0.0)


def test_floor_applied_as_read_equals_the_floor(store):
    lazy = apply_smoke_floor(open_snapshots(store), 5.0)
    eager = apply_smoke_floor(open_snapshots(store).load(), 5.0)
    for rows in (np.array([7, 3, 50]), slice(3, 9)):
        xr.testing.assert_identical(lazy.isel(snapshot=rows).load(), eager.isel(snapshot=rows))
    missing = open_snapshots(store).load()
    missing.smoke.values[3, 0, 0] = np.nan
    floored = apply_smoke_floor(missing, 5.0)
    assert np.isnan(floored.smoke.values[3, 0, 0]), "a floor does not hide missing smoke"


@pytest.mark.parametrize(
    ("memory", "choices", "said"),
    [
        ("100kB", {"preset": "paper-linear"}, r"decomposition of 100 snapshots .* at least 273 kB"),
        (
            "300kB",
            {"preset": "recommended"},
            "a spectral operator .* at least .* limit is 300 kB",
        ),
        ("3MB", {"family": "unet"}, r"a network of \d+ weights on 8 × 10 cells needs at"),
    ],
)
def test_limits_too_small_say_what_is_needed(store, memory, choices, said):
    with pytest.raises(PlumecastError, match=said):
        fit_surrogate(open_snapshots(store), resources=Resources(memory=memory), **choices)
    with pytest.raises(PlumecastError, match="holds all 100 snapshots in memory, about"):
        fit_baseline("nearest-fire", open_snapshots(store), resources=Resources(memory="100kB"))


MEASURED = """
import json, sys
from pathlib import Path
import plumecast as pc
from plumecast.compute.resources import Resources
from plumecast.data.split import SplitRecipe
from plumecast.surrogate.fit import fit_surrogate
from plumecast.workflows.evaluate import evaluate
from plumecast.workflows.predict import predict_store

def kilobytes(name):
    line = next(l for l in Path("/proc/self/status").read_text().splitlines() if l.startswith(name))
    return int(line.split()[1])

store, memory, choices = sys.argv[1], sys.argv[2], json.loads(sys.argv[3])
sizes = choices.pop("sizes", None)
if sizes is not None:
    import numpy as np
    from plumecast.operators.neural import map as neural
    from plumecast.operators.family import NOTHING, TrainingSet
    from plumecast.operators.lift import fit_lift
    neural.SIZES[choices["family"]] = sizes
    few = np.random.default_rng(0).random((8, 8, 8))
    training = TrainingSet(few, few[:, None], np.arange(8) % 2, NOTHING)
    neural.fit_neural(
        training, fit_lift(few), network=neural.Network(), schedule=neural.Schedule(1, 2)
    )
# A fit of the smallest thing loads every library, and starts their threads, before the count.
tiny = pc.open_snapshots(store).isel(snapshot=slice(0, 64)).load()
fit_surrogate(tiny, degree=2, fire_rank=2, smoke_rank=2)
split = SplitRecipe(smoke_floor=0.05).split(pc.open_snapshots(store))
Path("/proc/self/clear_refs").write_text("5")  # the largest resident set is counted from here
before = kilobytes("VmRSS")
surrogate = fit_surrogate(split.train, **choices, resources=pc.Resources(memory=memory))
fitted = kilobytes("VmHWM")
evaluate({"a": surrogate}, split.validation, split.test, resources=Resources(memory=memory))
blocks = predict_store(surrogate, store, resources=Resources(memory=memory))
blocks = sum(block.sizes["snapshot"] for block in blocks)
after = kilobytes("VmHWM")
surrogate.save(sys.argv[4])
print(json.dumps({"fit": fitted - before, "all": after - before, "predicted": blocks}))
"""


def measured_run(store: Path, memory: int, choices: dict, out: Path) -> dict:
    """Kilobytes of the largest resident set above that before the fit, in a process of its own.

    Not `getrusage`: its maximum is inherited from the process that started this one.
    """
    if not Path("/proc/self/clear_refs").exists():
        pytest.skip("the peak of resident memory is read from Linux's /proc")
    command = [sys.executable, "-c", MEASURED, store, f"{memory}", json.dumps(choices), out]
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def large_store(path: Path, snapshots: int, shape: tuple[int, int]) -> int:
    """A store of smooth random fields, block by block; the bytes of its fields in float32."""
    template = make_snapshots(fires=200, checkpoints=10, shape=shape)
    rng = np.random.default_rng(0)
    modes = np.stack([np.abs(template.smoke.values[k]) for k in range(7, 2000, 25)]).astype(
        np.float32
    )
    size = template.sizes["snapshot"]
    for number in range(0, snapshots, size):
        mix = rng.dirichlet(np.ones(len(modes)) * 0.1, size=size).astype(np.float32)
        fields = np.tensordot(mix, modes, 1)
        fires = template.copy(
            data={
                "smoke": fields,
                "time_since_ignition": (fields / (1.0 + fields)).astype(np.float32),
            }
        )
        names = {
            n: ("snapshot", np.char.add(f"{number}-", template[n].values), template[n].attrs)
            for n in ("fire_id", "ignition_id")
        }
        one = template.drought.copy(data=np.full(size, "high"))
        append_fire(path, fires.assign_coords({**names, "drought": one}))
    return 2 * 4 * snapshots * shape[0] * shape[1]


LARGE = {
    "linear": {"preset": "paper-linear", "fire_rank": 60, "smoke_rank": 60},
    "primal": {"degree": 2, "fire_rank": 20, "smoke_rank": 40},
    "lifted": {
        "degree": 2,
        "fire_rank": 20,
        "smoke_rank": 30,
        "lift": ["identity"],
        "products": ["hours"],
        "targets": ["log", "footprint"],
    },
    "spectral": {"preset": "recommended", "targets": ["log"]},
    # A network of 2 million weights would take hours.
    "network": {
        "family": "unet",
        "sizes": {"width": 8, "levels": 2},
        "epochs": 1,
        "targets": ["log"],
    },
}


@pytest.mark.slow
@pytest.mark.parametrize("choice", LARGE)
def test_a_store_four_times_the_limit_is_trained_within_it(tmp_path, monkeypatch, choice):
    choices = dict(LARGE[choice])
    count = {"spectral": 64_000, "lifted": 90_000}.get(choice, 40_000)
    size = large_store(tmp_path / "large.zarr", count, (24, 40))
    used = measured_run(tmp_path / "large.zarr", size // 4, choices, tmp_path / "a.plume")
    assert used["predicted"] == count
    assert used["all"] * 1024 < size // 4, used
    split = split_by_fire(apply_smoke_floor(open_snapshots(tmp_path / "large.zarr"), 0.05))
    if choice == "network":
        monkeypatch.setitem(neural.SIZES, "unet", choices.pop("sizes"))
    one = fit_surrogate(split.train.load(), **choices)
    other = load_surrogate(tmp_path / "a.plume")
    few = split.test.isel(snapshot=slice(0, 50))
    expected = one.predict(few).values
    # Systems in float32; a network's sums in float32; fields in float32.
    rounding = {"spectral": 1e-3, "network": 1e-3}.get(choice, 1e-5)
    np.testing.assert_allclose(other.predict(few).values, expected, atol=rounding * expected.max())


def test_a_small_store_four_times_the_limit_is_trained_within_it(tmp_path):
    choices = {"preset": "paper-linear", "fire_rank": 10, "smoke_rank": 10}
    size = large_store(tmp_path / "large.zarr", 16_000, (20, 30))
    used = measured_run(tmp_path / "large.zarr", size // 4, choices, tmp_path / "a.plume")
    assert used["all"] * 1024 < size // 4
