"""plumecast compared with other packages: the same fires, the same ranks, one run.

    plumecast simulate --preset paper -o paper.zarr
    python benchmarks/peers.py paper.zarr --out peers.json
    python benchmarks/peers.py paper.zarr --ignitions 20        a part of it, to try it

Every package encodes time since ignition with 200 modes and smoke with as many modes as plumecast
keeps (95 % of Σσ), and maps codes to codes. Hyperparameters of a package (penalty, length scale,
smoothing) are chosen by the relative error on the validation part. plumecast chooses its own by
leaving out training fires, without the validation part. The time of a fit includes these choices.
plumecast's networks are trained for `--seconds` on all cores that PyTorch may use.
Peers: scikit-learn, EZyRB and pyapprox (`pip install scikit-learn ezyrb pyapprox`); those that are
not installed are left out.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import importlib.util
import json
import math
import os
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import plumecast as pc
from families import limited
from limits import into_document
from plumecast.base.names import FIRE, SMOKE, SNAPSHOT
from plumecast.operators.settings import FAMILIES

Predict = Callable[[np.ndarray], np.ndarray]
SHARES = (1e-6, 1e-4, 1e-3, 1e-2, 1e-1)
"""Penalties tried for a peer, relative to the mean diagonal of its kernel."""


@dataclass(frozen=True)
class Data:
    """Fields as matrices, and the ranks every package uses."""

    split: pc.data.Split
    fire: np.ndarray
    smoke: np.ndarray
    validation_fire: np.ndarray
    validation_smoke: np.ndarray
    fire_rank: int
    smoke_rank: int

    def best(self, candidates: Iterable[tuple[str, Predict]]) -> tuple[str, Predict]:
        """The candidate with the smallest relative error on validation."""
        errors = []
        for name, predict in candidates:
            guess = np.maximum(predict(self.validation_fire), 0.0)
            error = float(np.linalg.norm(guess - self.validation_smoke))
            errors.append((error if math.isfinite(error) else math.inf, len(errors), name, predict))
        return min(errors)[2:]


def matrix(part: Any, name: str) -> np.ndarray:
    return part[name].values.reshape(part.sizes[SNAPSHOT], -1).astype(np.float64)


def plumecast_with(**choices: Any) -> Callable[[Data], tuple[str, Predict]]:
    def fit(data: Data) -> tuple[str, Predict]:
        if not {"preset", "family"} & set(choices):
            choices.update(fire_rank=data.fire_rank, smoke_rank=data.smoke_rank)
        surrogate = pc.fit_surrogate(data.split.train, **choices)
        found = {k: v for k, v in surrogate.training.items() if k in ("penalty", "length_scale")}
        return ", ".join(f"{k} {v:.3g}" for k, v in found.items()), surrogate.predict_rows

    return fit


def sklearn_polynomial(data: Data) -> tuple[str, Predict]:
    from sklearn.decomposition import PCA
    from sklearn.linear_model import Ridge
    from sklearn.preprocessing import PolynomialFeatures

    fire, smoke = PCA(data.fire_rank), PCA(data.smoke_rank)
    a, b = fire.fit_transform(data.fire), smoke.fit_transform(data.smoke)
    products = PolynomialFeatures(2, include_bias=False)
    features = products.fit_transform(a)
    size = float(np.mean(np.sum(features**2, axis=1)))

    def candidates() -> Iterable[tuple[str, Predict]]:
        for share in SHARES:
            ridge = Ridge(share * size).fit(features, b)
            yield (
                f"alpha {share * size:.3g}",
                lambda x, ridge=ridge: smoke.inverse_transform(
                    ridge.predict(products.transform(fire.transform(x)))
                ),
            )

    return data.best(candidates())


def sklearn_kernel(data: Data) -> tuple[str, Predict]:
    from sklearn.decomposition import PCA
    from sklearn.kernel_ridge import KernelRidge

    fire, smoke = PCA(data.fire_rank), PCA(data.smoke_rank)
    a, b = fire.fit_transform(data.fire), smoke.fit_transform(data.smoke)
    typical = 2.0 * float(np.mean(np.sum(a**2, axis=1)))

    def candidates() -> Iterable[tuple[str, Predict]]:
        for length in (0.25, 0.5, 1.0, 2.0):
            for alpha in SHARES:
                model = KernelRidge(
                    alpha=alpha, kernel="rbf", gamma=1.0 / (2.0 * length**2 * typical)
                ).fit(a, b)
                yield (
                    f"length {length:g}, alpha {alpha:g}",
                    lambda x, model=model: smoke.inverse_transform(
                        model.predict(fire.transform(x))
                    ),
                )

    return data.best(candidates())


def ezyrb_rbf(data: Data) -> tuple[str, Predict]:
    from ezyrb import POD, RBF

    fire = POD("correlation_matrix", rank=data.fire_rank)
    smoke = POD("correlation_matrix", rank=data.smoke_rank)
    a = fire.fit(data.fire.T).transform(data.fire.T).T
    b = smoke.fit(data.smoke.T).transform(data.smoke.T).T

    def candidates() -> Iterable[tuple[str, Predict]]:
        for smooth in (0.0, 1e3, 1e5):
            model = RBF(kernel="thin_plate_spline", smooth=smooth)
            model.fit(a, b)
            yield (
                f"thin plate spline, smooth {smooth:g}",
                lambda x, model=model: (
                    smoke.inverse_transform(model.predict(fire.transform(x.T).T).T).T
                ),
            )

    return data.best(candidates())


def pyapprox_operator(data: Data) -> tuple[str, Predict]:
    from pyapprox.surrogates.kerneloperator.encoders.pca import PCAFunctionEncoder
    from pyapprox.surrogates.kerneloperator.regressors.factory import make_latent_regressor
    from pyapprox.surrogates.kerneloperator.surrogate import KernelOperatorSurrogate
    from pyapprox.surrogates.kernels.matern import Matern52Kernel
    from pyapprox.util.backends.numpy import NumpyBkd

    backend = NumpyBkd()
    fire = PCAFunctionEncoder.fit_from_data(data.fire.T, backend, ncodes=data.fire_rank)
    smoke = PCAFunctionEncoder.fit_from_data(data.smoke.T, backend, ncodes=data.smoke_rank)
    a, b = fire.encode(data.fire.T), smoke.encode(data.smoke.T)
    typical = math.sqrt(2.0 * float(np.mean(np.sum(a**2, axis=0))))

    def candidates() -> Iterable[tuple[str, Predict]]:
        for length in (0.5, 1.0, 2.0):
            for nugget in (1e-6, 1e-3, 1e-2):
                scale = np.array([length * typical])
                kernel = Matern52Kernel(
                    scale, (1e-3 * typical, 1e3 * typical), data.fire_rank, backend, fixed=True
                )
                model = make_latent_regressor(
                    kernel, data.fire_rank, data.smoke_rank, backend, nugget
                )
                model.fit_internal(a, b)
                whole = KernelOperatorSurrogate([fire], [smoke], model)
                yield (
                    f"Matérn-5/2, length {length:g}, nugget {nugget:g}",
                    lambda x, whole=whole: whole.predict([x.T])[0].T,
                )

    return data.best(candidates())


PEERS: dict[str, tuple[str, Callable[[Data], tuple[str, Predict]]]] = {
    "plumecast, linear": ("plumecast", plumecast_with(degree=1)),
    "plumecast, quadratic": ("plumecast", plumecast_with(degree=2)),
    "plumecast, quadratic, centred": ("plumecast", plumecast_with(degree=2, center=True)),
    "plumecast, Matérn-5/2": ("plumecast", plumecast_with(kernel="polynomial-1 + matern-5/2")),
    "scikit-learn, PCA + PolynomialFeatures + Ridge": ("scikit-learn", sklearn_polynomial),
    "scikit-learn, PCA + KernelRidge (rbf)": ("scikit-learn", sklearn_kernel),
    "EZyRB, POD + RBF": ("ezyrb", ezyrb_rbf),
    "pyapprox, PCA kernel operator": ("pyapprox", pyapprox_operator),
    "plumecast, quick": ("plumecast", plumecast_with(preset="quick")),
    "plumecast, recommended": ("plumecast", plumecast_with(preset="recommended")),
    "plumecast, thorough": ("plumecast", plumecast_with(preset="thorough")),
    "DeepONet": ("plumecast", plumecast_with(family="deeponet", epochs=400)),
    "plumecast, FNO": ("plumecast", plumecast_with(family="fno", epochs=400)),
}
MODULES = {"scikit-learn": "sklearn", "DeepONet": "torch", "plumecast, FNO": "torch"}
"""Modules of packages, and of rows that need more than their package, where the names differ."""


def prepare(path: str, ignitions: int | None) -> Data:
    """The split, the ranks that 95 % of Σσ asks for, and the matrices."""
    snapshots = pc.data.drop_small_fires(pc.open_snapshots(path))
    split = pc.split_by_fire(snapshots)
    train = split.train
    if ignitions is not None:
        kept = np.unique(train.ignition_id.values)[:ignitions]
        train = train.isel({SNAPSHOT: np.flatnonzero(np.isin(train.ignition_id.values, kept))})
    split = pc.data.Split(train.load(), split.validation.load(), split.test.load())
    fire, smoke = matrix(split.train, FIRE), matrix(split.train, SMOKE)
    rank = pc.operators.fit_basis(smoke, std_fraction=0.95).rank
    most = min(200, pc.operators.fit_basis(fire, std_fraction=0.95).rank)
    return Data(
        split,
        fire,
        smoke,
        matrix(split.validation, FIRE),
        matrix(split.validation, SMOKE),
        most,
        rank,
    )


def score(predict: Predict, data: Data) -> dict[str, float]:
    """Scores on the test part, as `plumecast evaluate` has them."""
    split = data.split
    tau = pc.scores.smoke_threshold(split.validation[SMOKE])
    guess = np.maximum(predict(data.validation_fire), 0.0)
    alpha = pc.scores.choose_decision_threshold(guess, data.validation_smoke, tau)
    fire, smoke = matrix(split.test, FIRE), matrix(split.test, SMOKE)
    start = time.perf_counter()
    found = np.maximum(predict(fire), 0.0)
    seconds = time.perf_counter() - start
    each = pc.scores.score_footprints(found, smoke, tau, alpha)
    return {
        "auc": float(each.auc.median()),
        "iou": float(each.iou.median()),
        "deployable_iou": float(each.deployable_iou.median()),
        "relative_error": float(np.nanmedian(pc.scores.snapshot_relative_errors(found, smoke))),
        "log_error": float(
            np.nanmedian(pc.scores.snapshot_relative_errors(np.log1p(found), np.log1p(smoke)))
        ),
        "predict_ms": 1e3 * seconds / fire.shape[0],
    }


def score_labelled(surrogate: pc.Surrogate, data: Data) -> dict[str, float]:
    """Scores of a spectral surrogate or a network, which need the droughts of labelled data."""
    split = data.split
    result = pc.evaluate({"a": surrogate}, split.validation, split.test)
    found, smoke = surrogate.predict(split.test).values, split.test[SMOKE].values
    one = result.scores[0]
    return {
        "auc": one.auc,
        "iou": one.iou,
        "deployable_iou": one.deployable_iou,
        "relative_error": one.snapshot_error,
        "log_error": float(
            np.nanmedian(pc.scores.snapshot_relative_errors(np.log1p(found), np.log1p(smoke)))
        ),
        "predict_ms": one.predict_ms,
    }


def run(name: str, data: Data) -> dict[str, Any]:
    package, fit = PEERS[name]
    start = time.perf_counter()
    chosen, predict = fit(data)
    seconds = time.perf_counter() - start
    known = getattr(predict, "__self__", None)
    labelled = isinstance(known, pc.Surrogate) and known.settings["family"] != "coded"
    scores = score_labelled(known, data) if labelled else score(predict, data)
    version = pc.__version__ if package == "plumecast" else importlib.metadata.version(package)
    return {"name": name, "version": version, "fit_s": seconds, "chosen": chosen, **scores}


HEAD = (
    "| | fit with its choices | predict | AUC | IoU | deployable IoU | rel | rel ln | chosen |",
    "| --- | --- | --- | --- | --- | --- | --- | --- | --- |",
)


def row(found: dict[str, Any]) -> str:
    return (
        f"| {found['name']} {found['version']} | {found['fit_s']:.1f} s "
        f"| {found['predict_ms']:.2f} ms | {found['auc']:.3f} | {found['iou']:.3f} "
        f"| {found['deployable_iou']:.3f} | {found['relative_error']:.2f} "
        f"| {found['log_error']:.2f} | {found['chosen']} |"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("store")
    parser.add_argument("--ignitions", type=int, help="train on this many ignitions only")
    parser.add_argument("--only", help="names that contain this")
    parser.add_argument(
        "--seconds",
        type=float,
        default=40.0,
        help="training of a network; default: 40, about as "
        "long as `recommended` takes with the paper's sizes",
    )
    parser.add_argument("--out", type=Path, help="where to write the table as JSON")
    parser.add_argument("--docs", type=Path, help="a document whose section `peers` is replaced")
    arguments = parser.parse_args()
    if importlib.util.find_spec("torch") is not None:
        import deeponet

        deeponet.register()
    for name in {"deeponet", "fno"} & set(FAMILIES):
        FAMILIES[name] = limited(FAMILIES[name], arguments.seconds)
    data = prepare(arguments.store, arguments.ignitions)
    title = (
        f"{data.fire.shape[0]} training snapshots on {data.fire.shape[1]} cells, ranks "
        f"{data.fire_rank} → {data.smoke_rank}, {data.split.test.sizes[SNAPSHOT]} test snapshots, "
        f"{os.environ.get('OPENBLAS_NUM_THREADS', 'all')} BLAS thread(s)."
    )
    print(f"{title}\n")
    lines = [title, "", *HEAD]
    print("\n".join(HEAD))
    records = []
    for name, (package, _) in PEERS.items():
        if arguments.only and arguments.only not in name:
            continue
        needed = MODULES.get(name, MODULES.get(package, package))
        if importlib.util.find_spec(needed) is None:
            print(f"| {name} | not installed | | | | | | | |", flush=True)
            continue
        found = run(name, data)
        records.append(found)
        lines.append(row(found))
        print(lines[-1], flush=True)
        if arguments.out is not None:
            arguments.out.write_text(json.dumps(records, indent=1) + "\n")
        if arguments.docs is not None:
            into_document(arguments.docs, "peers", "\n".join(lines))


if __name__ == "__main__":
    main()
