"""Draw the curve of docs/results/shared-weather.md: scores against ignitions, and against seconds.

    python tools/docs/draw_learning_curve.py drawn.png families.jsonl... fno_peer.jsonl...

The files are those that benchmarks/families.py and benchmarks/fno_peer.py write. For every family
and number of ignitions the longest training is drawn; the panel of seconds has those on a GPU. For
the peer all lengths of training on all ignitions are drawn, without the first of every file, whose
time includes the start of the GPU.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt

NAMES = {"spectral": "recommended", "thorough": "thorough", "unet": "U-Net", "fno": "FNO"}
PANELS = {"iou": "IoU", "relative_error": "relative error of g"}
PEER = "neuraloperator"


def read() -> list[dict[str, Any]]:
    """The lines of all files that are of the file's own split and of a GPU that is awake."""
    files = [Path(name).read_text().splitlines() for name in sys.argv[2:]]
    lines = [(number, json.loads(line)) for file in files for number, line in enumerate(file)]
    return [
        line
        for number, line in lines
        if line.get("split", 0) == 0 and not (number == 0 and line["family"].startswith(PEER))
    ]


def curve(lines: list[dict[str, Any]], family: str, score: str) -> tuple[list[int], list[float]]:
    """A score by the number of ignitions, of the longest fit at each."""
    own = sorted(
        (line for line in lines if line["family"] == family), key=lambda line: line["fit_seconds"]
    )
    longest = {line["ignitions"]: line[score] for line in own}
    counts = sorted(longest)
    return counts, [longest[count] for count in counts]


def main() -> None:
    lines = read()
    figure, axes = plt.subplots(1, 3, figsize=(11.0, 3.4), layout="constrained")
    for axis, (score, title) in zip(axes, PANELS.items(), strict=False):
        for number, (family, name) in enumerate(NAMES.items()):
            axis.plot(*curve(lines, family, score), f"C{number}o-", label=name)
        axis.set(xscale="log", xlabel="training ignitions", ylabel=title)
        axis.set_xticks(counts := curve(lines, "spectral", score)[0], [str(n) for n in counts])
        axis.minorticks_off()
    axes[0].legend(frameon=False)
    score, title = "relative_error", "relative error of g, all ignitions"
    largest = max(line["ignitions"] for line in lines)
    for number, (family, name) in enumerate(NAMES.items()):
        full = [k for k in lines if k["family"] == family and k["ignitions"] == largest]
        full = [line for line in full if line["device"] == "cuda"]
        for line in sorted(full, key=lambda line: line["fit_seconds"])[-1:]:
            style = {"markersize": 8, "label": name}
            axes[2].plot(line["fit_seconds"], line[score], f"C{number}o", **style)
    peer = sorted(
        (line["fit_seconds"], line[score])
        for line in lines
        if line["family"].startswith(PEER) and line["ignitions"] == largest
    )
    axes[2].plot(*zip(*peer, strict=True), "k.-", label="neuraloperator's FNO")
    axes[2].set(xscale="log", xlabel="seconds of training, one H200", ylabel=title)
    axes[2].set_xticks(ticks := [10, 20, 50, 100, 200], [str(n) for n in ticks])
    axes[2].minorticks_off()
    axes[2].legend(frameon=False)
    figure.savefig(Path(sys.argv[1]), dpi=110)


if __name__ == "__main__":
    main()
