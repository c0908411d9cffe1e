"""Coverage of intervals of a mean over fires, and how many true fires the surrogate saves.

    export PYTHONPATH=src
    python benchmarks/intervals.py coverage --repetitions 500
    python benchmarks/intervals.py needed snapshots.nc --trained 60 --draws 2000

`coverage` draws smoke at a place from a population whose mean is known: ln g has a part that the
snapshots of an ignition share and a part of their own, and the surrogate has a stated correlation
of ln g and is biased by a factor. Ignitions have 6 snapshots, in the skewed population 1 to 8.
Every repetition draws the fires with true smoke, and the cheap fires, anew.

`needed` trains `recommended` on some fires of a store. The others are the population, with known
true and predicted mean optical depth Q = E ln(g + 1) over cells. Sets of n fires are drawn from it
with replacement; the error is the root mean square error of Q over draws, relative to Q. Plain
Monte Carlo averages the true Q of the n fires; the control variate also has the surrogate's mean
over all fires of the population.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

from plumecast.scores.sampling import cluster_mean, cluster_sums, control_variate

SKEWED, OWN = 0.6, 0.7
"""Standard deviations of ln g: of a skewed population, and of a snapshot relative to its ignition.
"""


def draw(
    rng: np.random.Generator,
    ignitions: int,
    correlation: float,
    *,
    spread: float,
    bias: float,
    equal: bool,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """True smoke, predicted smoke and the ignition of every snapshot."""
    sizes = np.full(ignitions, 6) if equal else rng.integers(1, 9, size=ignitions)
    clusters = np.repeat(np.arange(ignitions), sizes)
    other = np.sqrt(1.0 - correlation**2)

    def pair(count: int) -> tuple[np.ndarray, np.ndarray]:
        first, second = rng.normal(size=(2, count))
        return first, correlation * first + other * second

    whole, part = pair(ignitions), pair(clusters.size)
    truth, predicted = (
        np.exp(spread * (shared[clusters] + OWN * own))
        for shared, own in zip(whole, part, strict=True)
    )
    return truth, bias * predicted, clusters


def coverage(options: argparse.Namespace) -> None:
    """Print a table of Markdown, a line per population and number of true ignitions."""
    print("| spread of ln g | correlation | bias | true ignitions | coverage | width | plain |")
    print("|" + " --- |" * 7)
    for spread in (0.4, SKEWED):
        for correlation in (0.3, 0.7, 0.9, 0.98):
            for bias in (1.0, 2.0):
                for number in (8, 16, 32, 64):
                    drawn = {"spread": spread, "bias": bias, "equal": spread < SKEWED}
                    print(coverage_line(options, number, correlation, **drawn), flush=True)


def coverage_line(
    options: argparse.Namespace, number: int, correlation: float, **drawn: float
) -> str:
    """Share of intervals with the mean, median width against the truth alone, share without β."""
    rng = np.random.default_rng(options.seed)
    mean = np.exp(0.5 * drawn["spread"] ** 2 * (1.0 + OWN**2))
    hits, widths, used = [], [], []
    for _ in range(options.repetitions):
        truth, own, clusters = draw(rng, number, correlation, **drawn)
        _, cheap, groups = draw(rng, options.cheap, correlation, **drawn)
        sums, counts = cluster_sums(truth, clusters)
        predicted, _ = cluster_sums(own, clusters)
        found = control_variate(sums, predicted, counts, cluster_mean(cheap, groups))
        low, high = found.estimate.interval(0.95)
        ends = cluster_mean(truth, clusters).interval(0.95)
        hits.append(low <= mean <= high)
        widths.append((high - low) / (ends[1] - ends[0]))
        used.append(bool(found.used))
    return (
        f"| {drawn['spread']} | {correlation} | {drawn['bias']:g} | {number} "
        f"| {100 * np.mean(hits):.1f} % | {np.median(widths):.2f} "
        f"| {100 * (1 - np.mean(used)):.0f} % |"
    )


def needed(options: argparse.Namespace) -> None:
    """Print ρ, and the true fires for a stated error of Q with and without the surrogate."""
    import plumecast as pc

    data = pc.open_snapshots(options.data).load()
    fires = np.unique(data.ignition_id.values)
    order = np.random.default_rng(options.seed).permutation(fires)
    train, others = order[: options.trained], order[options.trained :]
    known = data.isel(snapshot=np.isin(data.ignition_id, train))
    surrogate = pc.fit_surrogate(known, options.preset, layers=options.layers)
    population = data.isel(snapshot=np.isin(data.ignition_id, others))
    fields = surrogate.predict(population)
    grid = ("y", "x")
    values = [np.log1p(part).mean(grid).values for part in (population.smoke, fields)]
    clusters = population.ignition_id.values
    (truth, counts), (own, _) = (cluster_sums(part, clusters) for part in values)
    mean = truth.sum() / counts.sum()
    cheap = cluster_mean(values[1], clusters)
    x, y = own - cheap.mean * counts, truth - mean * counts
    rho = (x * y).sum() / np.sqrt((x * x).sum() * (y * y).sum())
    print(f"{len(train)} training fires, {len(others)} in the population, Q = {mean:.4f}")
    print(f"the surrogate's Q is {cheap.mean / mean:.3f} of the true one, ρ = {rho:.4f}")
    print("| true fires | plain Monte Carlo | control variate |\n| --- | --- | --- |")
    rng = np.random.default_rng(options.seed)
    for number in (4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128):
        errors = []
        for _ in range(options.draws):
            rows = rng.integers(counts.size, size=number)
            found = control_variate(truth[rows], own[rows], counts[rows], cheap)
            errors.append((truth[rows].sum() / counts[rows].sum(), found.estimate.mean))
        plain, corrected = np.sqrt(np.square(np.array(errors) / mean - 1.0).mean(axis=0))
        print(f"| {number} | {100 * plain:.1f} % | {100 * corrected:.1f} % |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    steps = parser.add_subparsers(required=True)
    step = steps.add_parser("coverage")
    step.add_argument("--repetitions", type=int, default=500)
    step.add_argument("--cheap", type=int, default=2000, help="ignitions with predictions only")
    step.add_argument("--seed", type=int, default=0)
    step.set_defaults(run=coverage)
    step = steps.add_parser("needed")
    step.add_argument("data", type=Path)
    step.add_argument("--trained", type=int, default=60, help="number of training fires")
    step.add_argument("--draws", type=int, default=2000)
    step.add_argument("--preset", default="recommended")
    step.add_argument("--layers", type=int, default=3)
    step.add_argument("--seed", type=int, default=0)
    step.set_defaults(run=needed)
    options = parser.parse_args()
    options.run(options)


if __name__ == "__main__":
    main()
