"""Mean optical depth: how many high-fidelity samples does each estimator of Q = E[ln(g+1)] need?

Q is the mean over the final snapshots of the test fires. Four estimators use n samples. *Monte
Carlo* is the mean of n final test snapshots. *Operator* is the mean over all test fires of the
predictions of a linear operator A trained on n final training snapshots. *Reduced Monte Carlo* is
the Monte Carlo mean projected onto the output basis of the operator. *Corrected* uses the operator
as a control variate of the n training samples,

    Q̂ = mean_train[y] + c (mean_test[A f] − mean_train[A f]),

where the predictions for the training samples are out-of-fold (five folds). The standard error of a
cell is that of the mean of y − c A f over the n samples. With c = 1, Q̂ is the operator's mean plus
the mean out-of-fold residual.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import scipy.linalg
import xarray as xr
from matplotlib.figure import Figure

from plumecast.base.errors import PlumecastError
from plumecast.base.names import FIRE, SMOKE, SNAPSHOT
from plumecast.compute.arrays import Array
from plumecast.compute.linalg import gram
from plumecast.data.schema import final_snapshots
from plumecast.operators.pca import GRAM_LIMIT, rank_for_std
from plumecast.paper import published
from plumecast.paper.context import Context, Study, select, tidy
from plumecast.paper.figures import BLUE, INK, MUTED, ORANGE, VERMILION, light_grid, new_figure
from plumecast.scores.tally import known_median

ESTIMATORS = {
    "monte-carlo": "Monte Carlo",
    "reduced": "reduced Monte Carlo",
    "operator": "operator",
    "corrected": "operator, corrected",
}
STD_FRACTION = 0.95
SIZES = (5, 7, 10, 15, 20, 30, 50, 75, 100, 150, 200, 300, 400)
WANTED = 0.10  # relative error to reach
FOLDS = 5
FEWEST = 10  # final training snapshots that the study needs

COLUMNS = {
    "estimator": ("estimator of Q", "1"),
    "samples": ("high-fidelity samples", "1"),
    "repeat": ("number of the random draw", "1"),
    "error": ("relative error of Q", "1"),
    "error_bar": ("predicted relative error of Q, one standard error", "1"),
    "covered": ("share of smoky cells within two standard errors", "1"),
    "coefficient": ("coefficient of the control variate", "1"),
}


def run(context: Context) -> xr.Dataset:
    """Error of every estimator for each sample size and random draw."""
    fires, logs = _final_matrices(context.split.train, "training")
    test_fires, test_logs = _final_matrices(context.split.test, "test")
    count = fires.shape[0]
    if count < FEWEST:
        raise PlumecastError(
            f"{count} final training snapshots are too few to estimate a mean; at least {FEWEST} "
            "are needed"
        )
    truth = test_logs.mean(axis=0)
    if not truth.any():
        raise PlumecastError(
            "the final test snapshots are without smoke, so Q is zero everywhere; choose other "
            "test fires"
        )
    pool = make_pool(fires, logs, test_fires, STD_FRACTION)
    sizes = sorted({size for size in SIZES if size < 0.8 * count} | {count})
    rng = context.rng("optical-depth")
    rows: list[dict[str, object]] = []
    for size in sizes:
        context.tell(f"optical depth from {size} samples")
        for repeat in range(context.limits.repeats):
            draw = rng.permutation(count)[:size]
            # With replacement: a draw without it would reach zero error when all are used.
            carlo = test_logs[rng.integers(test_logs.shape[0], size=size)].mean(axis=0)
            labels = {"samples": size, "repeat": repeat}
            rows += [labels | row for row in _estimate(pool, draw, carlo, truth)]
    table = tidy(rows, COLUMNS)
    needs = {}
    for name in ESTIMATORS:
        drawn, spread = bands(table, name)
        needs[f"{name} samples_needed"] = samples_needed(drawn, spread[1], WANTED)
    return table.assign_attrs(
        wanted=WANTED,
        final_test=test_fires.shape[0],
        final_train=count,
        repeats=context.limits.repeats,
        paper_extra_samples=published.EXTRA_SAMPLES,
        **needs,
    )


def _final_matrices(part: xr.Dataset, what: str) -> tuple[Array, Array]:
    """Fires and ln(smoke + 1) of the final snapshots, (n, N) each; raises if there are none."""
    if "is_final" not in part.variables or not bool(part.is_final.any()):
        raise PlumecastError(
            f"the {what} part has no final snapshots (coordinate is_final); the mean optical depth "
            "needs them, so add is_final to the data"
        )
    final = final_snapshots(part)
    rows = (final.sizes[SNAPSHOT], -1)
    fires, smoke = (final[name].values.reshape(rows).astype(np.float64) for name in (FIRE, SMOKE))
    return fires, np.log1p(smoke)


def _estimate(pool: Pool, draw: Array, carlo: Array, truth: Array) -> list[dict[str, object]]:
    """The error of every estimator, and how right the standard error of the last is."""
    operator, corrected = fit_subset(pool, draw), corrected_mean(pool, draw)
    estimates = {
        "monte-carlo": carlo,
        "reduced": operator.project(carlo),
        "operator": operator.predict_others().mean(axis=0),
        "corrected": corrected.mean,
    }
    size, smoky = np.linalg.norm(truth), truth > 0.0
    rows: list[dict[str, object]] = [
        {"estimator": name, "error": float(np.linalg.norm(mean - truth) / size)}
        for name, mean in estimates.items()
    ]
    inside = np.abs(corrected.mean - truth)[smoky] <= 2.0 * corrected.standard_error[smoky]
    rows[-1] |= {
        "error_bar": float(np.linalg.norm(corrected.standard_error) / size),
        "covered": float(inside.mean()),
        "coefficient": corrected.coefficient,
    }
    return rows


@dataclass(frozen=True, slots=True)
class CorrectedMean:
    """An estimate of Q and its standard error, both (N,)."""

    mean: Array
    standard_error: Array
    coefficient: float


def corrected_mean(pool: Pool, draw: Array) -> CorrectedMean:
    """The operator as a control variate, with out-of-fold predictions of the samples.

    All cells share one coefficient c, from least squares of the centred samples on the centred
    predictions, clipped to [0, 1]. With c = 0 the estimate is the mean of the samples; with c = 1
    it is the operator's mean plus the mean residual.
    """
    logs = pool.outputs[draw]
    out_of_fold = np.empty_like(logs)
    everywhere = np.zeros_like(logs[0])
    for fold in np.array_split(np.arange(draw.size), min(FOLDS, draw.size)):
        operator = fit_subset(pool, np.delete(draw, fold))
        out_of_fold[fold] = operator.predict_rows(draw[fold])
        everywhere += operator.predict_others().mean(axis=0) * fold.size / draw.size
    centred = out_of_fold - out_of_fold.mean(axis=0)
    size = float(np.sum(centred**2))
    slope = float(np.sum(centred * (logs - logs.mean(axis=0))))
    coefficient = min(max(slope / size, 0.0), 1.0) if size > 0.0 else 0.0
    residuals = logs - coefficient * out_of_fold
    return CorrectedMean(
        mean=residuals.mean(axis=0) + coefficient * everywhere,
        standard_error=residuals.std(axis=0, ddof=1) / math.sqrt(residuals.shape[0]),
        coefficient=coefficient,
    )


def bands(finding: xr.Dataset, estimator: str, column: str = "error") -> tuple[Array, Array]:
    """Sample sizes, and the 25th, 50th and 75th percentile over the draws, (3, sizes)."""
    part = select(finding, estimator=estimator)
    sizes = np.unique(part.samples.values)
    values = [part[column].values[part.samples.values == size] for size in sizes]
    return sizes, np.array([np.percentile(item, (25, 50, 75)) for item in values]).T


def samples_needed(sizes: Array, errors: Array, wanted: float) -> float:
    """Samples at which the median error falls to `wanted`; NaN if it never does.

    Between two sample sizes the error is interpolated by a power law.
    """
    below = np.flatnonzero(errors <= wanted)
    if below.size == 0:
        return math.nan
    first = int(below[0])
    if first == 0:
        return float(sizes[0])
    x, y = np.log(sizes[first - 1 : first + 1]), np.log(errors[first - 1 : first + 1])
    return float(np.exp(x[0] + (math.log(wanted) - y[0]) * (x[1] - x[0]) / (y[1] - y[0])))


CAPTIONS = {
    "errors": (
        "Relative error of the mean optical-depth proxy over the final test snapshots against "
        "the number of high-fidelity samples: median and 25–75 % band over random draws. The "
        "dotted line is the standard error that the corrected estimator predicts; it should "
        "coincide with the solid line of the same colour."
    )
}


def figures(finding: xr.Dataset) -> dict[str, Figure]:
    """Error of the four estimators against samples, with the standard error of the last."""
    figure = new_figure(3.4, width=5.6)
    ax = figure.subplots()
    colours = dict(zip(ESTIMATORS, (MUTED, ORANGE, BLUE, VERMILION),
                       strict=True))  # fmt: skip
    for name, label in ESTIMATORS.items():
        sizes, spread = bands(finding, name)
        ax.fill_between(sizes, spread[0], spread[2], color=colours[name], alpha=0.18, linewidth=0)
        ax.plot(sizes, spread[1], marker="o", color=colours[name], label=label)
    sizes, bar = bands(finding, "corrected", "error_bar")
    ax.plot(sizes, bar[1], color=colours["corrected"], linestyle=":", label="its standard error")
    ax.axhline(finding.attrs["wanted"], color=INK, linewidth=0.7, linestyle="--")
    ax.set(xscale="log", yscale="log", xlabel="high-fidelity samples",
           ylabel="relative error of Q = E[ln(g + 1)]")  # fmt: skip
    shown = [size for size in (5, 10, 20, 50, 100, 200, 400) if sizes[0] <= size <= sizes[-1]]
    ax.set_xticks(shown, [str(size) for size in shown])
    levels = [0.02, 0.05, 0.1, 0.2, 0.5, 1.0]
    ax.set_yticks(levels, [f"{100 * level:g} %" for level in levels])
    spread = np.concatenate([bands(finding, name)[1].ravel() for name in ESTIMATORS])
    positive = spread[np.isfinite(spread) & (spread > 0.0)]
    if positive.size:
        ax.set_ylim(0.8 * float(positive.min()), 1.2 * float(positive.max()))
    ax.minorticks_off()
    light_grid(ax)
    ax.legend()
    return {"errors": figure}


def remarks(finding: xr.Dataset) -> list[str]:
    """Samples that each estimator needs, and whether the standard error is right."""
    needs = {name: finding.attrs[f"{name} samples_needed"] for name in ESTIMATORS}
    most = int(finding.samples.max())
    listed = ", ".join(
        f"{needs[name]:.0f} ({label})"
        if math.isfinite(needs[name])
        else f"more than {most} ({label})"
        for name, label in ESTIMATORS.items()
    )
    part = select(finding, estimator="corrected")
    return [
        f"A median error of {finding.attrs['wanted']:.0%} needs this many samples: {listed}. In "
        f"the paper Monte Carlo needs about {published.EXTRA_SAMPLES} samples more than "
        "the operator.",
        f"{known_median(part.covered):.0%} of the cells with smoke lie within two standard errors "
        f"of the corrected estimate. The median coefficient c is "
        f"{known_median(part.coefficient):.2f}: c = 0 ignores the operator, c = 1 adds the mean "
        "residual to its mean.",
        f"The reference is the mean over {finding.attrs['final_test']} final test snapshots. There "
        f"are {finding.attrs['repeats']} random draws per sample size, and Monte Carlo draws with "
        "replacement.",
    ]


# -- Linear operators fitted to many subsets of one training set


@dataclass(frozen=True, slots=True)
class Pool:
    """Inner products of all training rows and of the new inputs to predict."""

    outputs: Array  # (M, N)
    input_gram: Array  # (M, M)
    output_gram: Array  # (M, M)
    cross: Array  # (K, M), new inputs times training inputs
    std_fraction: float


def make_pool(inputs: Array, outputs: Array, others: Array, std_fraction: float) -> Pool:
    """Compute every inner product that a subset can need."""
    return Pool(outputs, gram(inputs), gram(outputs), others @ inputs.T, std_fraction)


@dataclass(frozen=True, slots=True)
class SubsetOperator:
    """The paper's linear operator (Theorem 1) fitted to a subset of the rows of a pool.

    With the rows X = U Σ Wᵀ and Y = Ũ Σ̃ W̃ᵀ on the first r and r̃ modes it predicts for inputs x

        ŷ = x Xᵀ · U Σ⁻² Uᵀ · Ũ Ũᵀ · Y,

    so that n rows cost two n × n eigendecompositions and one product over the cells.
    """

    pool: Pool
    rows: Array  # (n,)
    mixing: Array  # (n, n), U Σ⁻² Uᵀ Ũ Ũᵀ
    output_vectors: Array  # (n, r̃), Ũ
    output_spectrum: Array  # (r̃,)

    def predict_others(self) -> Array:
        """Predictions for the new inputs, (K, N), clipped at zero."""
        return self._predict(self.pool.cross[:, self.rows])

    def predict_rows(self, rows: Array) -> Array:
        """Predictions for rows of the pool, (m, N), clipped at zero."""
        return self._predict(self.pool.input_gram[np.ix_(rows, self.rows)])

    def _predict(self, products: Array) -> Array:
        out = (products @ self.mixing) @ self.pool.outputs[self.rows]
        return np.maximum(out, 0.0, out=out)

    def project(self, field: Array) -> Array:
        """Projection of a field (N,) onto the output modes of this subset."""
        outputs = self.pool.outputs[self.rows]
        codes = (self.output_vectors.T @ (outputs @ field)) / self.output_spectrum**2
        projected: Array = (self.output_vectors @ codes) @ outputs
        return projected


def fit_subset(pool: Pool, rows: Array) -> SubsetOperator:
    """Fit the operator to a subset of the rows."""
    spectrum, vectors = _modes(pool.input_gram[np.ix_(rows, rows)], pool.std_fraction)
    out_spectrum, out_vectors = _modes(pool.output_gram[np.ix_(rows, rows)], pool.std_fraction)
    mixing = ((vectors / spectrum**2) @ (vectors.T @ out_vectors)) @ out_vectors.T
    return SubsetOperator(pool, rows, mixing, out_vectors, out_spectrum)


def _modes(products: Array, std_fraction: float) -> tuple[Array, Array]:
    """Leading singular values and left singular vectors, up to the std fraction."""
    values, vectors = scipy.linalg.eigh(products, driver="evd", check_finite=False)
    spectrum = np.sqrt(np.clip(values[::-1], 0.0, None))
    spectrum[spectrum < GRAM_LIMIT * spectrum[0]] = 0.0  # rounding error
    rank = rank_for_std(spectrum, std_fraction)
    return spectrum[:rank], np.ascontiguousarray(vectors[:, ::-1][:, :rank])


STUDY = Study(
    name="optical-depth", title="Mean optical depth from few samples",
    question="How many high-fidelity samples does the mean of ln(g + 1) need?",
    run=run, figures=figures, remarks=remarks, captions=CAPTIONS, limits=("repeats",),
)  # fmt: skip
