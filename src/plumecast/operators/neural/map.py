"""Networks as field maps: a U-Net or a Fourier neural operator, trained with PyTorch.

They have the same inputs and targets as the spectral family: channels of the lifted fire, scalars
of the snapshot (covariates, indicators of the scenario) as constant channels, all targets at once.
The networks are in `nets`, the loss and the schedule in `training`. PyTorch is imported only when
a network is fitted or applied. A fitted network is stored as its sizes and its weights, as plain
arrays; it is saved without pickle and can be loaded on any machine.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from plumecast.base.errors import PlumecastError, require
from plumecast.base.values import check_count, setting
from plumecast.compute.arrays import (
    Array,
    array_namespace,
    assembled,
    is_torch_array,
    like,
    positive_part,
    take_rows,
    to_numpy,
)
from plumecast.compute.blocks import row_blocks
from plumecast.compute.resources import Budget
from plumecast.operators.family import (
    NOTHING,
    ComputedFields,
    Conditions,
    Family,
    FittedMap,
    TrainingSet,
)
from plumecast.operators.lift import fit_lift
from plumecast.operators.targets import are_indicators, check_choice, target_sizes

if TYPE_CHECKING:
    from plumecast.operators.settings import Settings

SIZES: dict[str, dict[str, int]] = {
    "unet": {"width": 32, "levels": 4},
    "fno": {"width": 32, "modes": 20, "layers": 4},
}
"""The networks and their sizes: about 2 and 6.6 million weights for a dozen channels."""

SHIFT = 0.1
"""Largest random shift in training, as a share of the grid's shorter side. With 12 ignitions of the
simulator's `paper` preset on a halved grid it reduced the out-of-fold loss of a small U-Net from
.745 to .674."""

BLOCK, DEVICE_BLOCK = 16, 64
"""Snapshots predicted at a time on the host and on a GPU; they bound the memory of the channels."""


@dataclass(frozen=True, slots=True)
class NeuralMap:
    """A trained network from lifted input and scalars to targets."""

    lift: Any
    architecture: str  # a key of SIZES
    sizes: dict[str, int]
    weights: dict[str, Array]  # name → float32
    target_scales: Array  # (T,), root mean square in training; 1 for indicators
    limits: Array  # (T,), largest value in training; predictions are clipped to [0, limit]
    indicators: tuple[bool, ...]  # whether a target is 0 or 1 and predicted as a probability
    scalars: int  # P
    positions: bool  # whether the coordinates are channels; the map is then not equivariant
    shape: tuple[int, int]  # the grid

    def predict(self, fire: Array, given: Conditions = NOTHING, device: str | None = None) -> Array:
        """(M, *grid) → (M, T, *grid), in the targets' own units; an empty fire gives zero.

        A fire that is a tensor is predicted on its device, any other array on the torch `device`
        (by default the CPU).
        """
        if fire.shape[1:] != self.shape:
            raise PlumecastError(
                f"this network was trained on a grid {self.shape}, got {fire.shape[1:]}; regrid "
                "the input"
            )
        scalars = _scalars(given.scalars(), fire.shape[0], self.scalars)
        where = str(fire.device) if is_torch_array(fire) else device or "cpu"
        shape = (int(fire.shape[0]), len(self.indicators), *self.shape)
        return assembled(self._parts(fire, scalars, given.physics, where), shape, fire)

    def _parts(
        self, fire: Array, scalars: Array, physics: Array | None, device: str
    ) -> Iterator[tuple[Array, Array]]:
        """Row indices and their predictions, empty fires first."""
        burned = to_numpy(array_namespace(fire).any(fire > 0.0, axis=(1, 2)))
        none, some = np.flatnonzero(~burned), np.flatnonzero(burned)
        kinds = (len(self.indicators), *self.shape)
        yield none, like(np.zeros((none.size, *kinds), dtype=np.float32), fire)
        if not some.size:  # an empty fire needs no network
            return
        torch, where = check_torch(), _device(device)
        from plumecast.operators.neural import training as neural

        network = self._network().to(where).eval()
        for part in row_blocks(some.size, BLOCK if where.type == "cpu" else DEVICE_BLOCK):
            rows = some[part]
            with torch.inference_mode():
                carried = None if physics is None else take_rows(physics, rows)
                channels = self.lift(take_rows(fire, rows), physics=carried)
                lifted = neural.as_tensor(channels).to(where)
                extra = torch.from_numpy(scalars[rows]).to(where)
                output = network(neural.join(lifted, extra, self.positions)).float()
            if not is_torch_array(fire):
                output = like(to_numpy(output), fire)
            xp = array_namespace(output)
            scales, limits = (
                like(own, output, output.dtype)[:, None, None]
                for own in (self.target_scales, self.limits)
            )
            values = output * scales
            for t, indicator in enumerate(self.indicators):
                if indicator:
                    values[:, t, ...] = 0.5 * (1.0 + xp.tanh(0.5 * output[:, t, ...]))
            yield rows, xp.minimum(positive_part(values), limits)

    @property
    def inputs(self) -> int:
        """Number of input channels of the network."""
        return int(self.lift.channels) + self.scalars + 2 * self.positions

    def untrained(self) -> Any:
        """The network with random weights."""
        from plumecast.operators.neural.nets import build

        targets = len(self.indicators)
        return build(
            self.architecture, self.sizes, inputs=self.inputs, targets=targets, grid=self.shape
        )

    def _network(self) -> Any:
        torch = check_torch()
        from plumecast.operators.neural.training import as_tensor

        with torch.device("meta"):  # skips the random initialisation of the weights
            network = self.untrained()
        tensors = {name: as_tensor(values) for name, values in self.weights.items()}
        try:
            network.load_state_dict(tensors, assign=True)
        except RuntimeError as error:  # a name or a shape differs
            reason = str(error).split("\n", 1)[0]
            raise PlumecastError(
                f"the weights do not fit the {self.architecture} network ({reason}); train again"
            ) from None
        return network

    def working_bytes(self) -> tuple[float, float]:
        """(fixed, per_row) working bytes: the activations of a block, half of those in training."""
        from plumecast.operators.neural import training as neural

        kept = neural.kept_bytes(self._network(), self.inputs, self.shape)
        return 0.5 * BLOCK * kept, 0.0


@dataclass(frozen=True, slots=True)
class NeuralSettings:
    """Settings of the networks."""

    epochs: int = setting(60, "Passes over the training data, for networks.")

    def __post_init__(self) -> None:
        check_count("epochs", self.epochs, most=1_000_000)

    def simplified(self) -> NeuralSettings:
        """The settings themselves; no cheaper ones are known that compare frames as well."""
        return self


def fit_neural_fields(training: TrainingSet, settings: Settings, resources: Budget) -> FittedMap:
    """Train the network of the settings' family."""
    own = settings.family_settings
    assert isinstance(own, NeuralSettings)
    check_choice(training.targets.shape, resources.limit)
    lift = fit_lift(training.fire, settings.lift, settings.products, bins=settings.age_bins,
                    physics=training.given.physics)  # fmt: skip
    name = resources.device.name
    return fit_neural(
        training,
        lift,
        network=Network(settings.family),
        schedule=Schedule(own.epochs),
        device="cpu" if name in ("cpu", "torch") else name,
        limit=resources.limit,
        progress=lambda epoch: resources.progress(f"epoch {epoch.number} of {epoch.of}"),
    )


@dataclass(frozen=True, slots=True)
class Network:
    """Which network is trained."""

    architecture: str = "unet"  # a key of SIZES
    sizes: Mapping[str, int] = field(default_factory=dict)  # in place of those of SIZES


@dataclass(frozen=True, slots=True)
class Schedule:
    """Duration and learning rate of a training; `seconds` limits it and shortens the schedule."""

    epochs: int = 60
    batch: int = 16
    learning_rate: float = 2e-3
    shift: int | None = None  # largest random shift in cells; None: SHIFT
    seconds: float | None = None
    seed: int = 0


@dataclass(frozen=True, slots=True)
class Epoch:
    """The progress report after every pass over the training rows."""

    number: int
    of: int
    seconds: float
    training_loss: float
    left_out_loss: float


def fit_neural(
    training: TrainingSet,
    lift: Any,
    *,
    network: Network,
    schedule: Schedule,
    device: str | None = None,
    limit: int | None = None,
    progress: Callable[[Epoch], None] | None = None,
) -> FittedMap:
    """Train a network; its out-of-fold predictions are of the last fold, which it does not see.

    The weights with the smallest loss on that fold are kept. With a `limit` in bytes, snapshots are
    read a few batches at a time. Fire and targets of each batch are shifted by random numbers of
    cells. `device` is a torch device, by default a GPU if there is one. On a CPU the same seed
    gives the same weights for any limit, unless the schedule's `seconds` end the training.
    """
    torch = check_torch()
    from plumecast.operators.neural import training as neural

    fire, targets, folds = training.fire, training.targets, training.folds()
    given = _scalars(training.given.scalars(), fire.shape[0], None)
    untrained = _describe(training, lift, network, given.shape[1])
    left_out = np.flatnonzero(folds == np.max(folds))
    learn = np.flatnonzero(folds != np.max(folds))
    if learn.size == 0:
        raise PlumecastError(
            "a network needs at least two ignitions, one of which is left out; add fires"
        )
    where = _device(device)
    if schedule.shift is None:
        schedule = replace(schedule, shift=round(SHIFT * min(untrained.shape)))
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(schedule.seed)
        module = untrained.untrained().to(where)
    ahead = neural.samples_ahead(limit, module, untrained.inputs, targets.shape, schedule.batch)
    stored = neural.StoredSamples(
        fire, given, targets, lift, untrained.target_scales, where, ahead, training.given.physics
    )
    samples = stored if ahead < fire.shape[0] else stored.read(np.arange(fire.shape[0]))
    neural.train(
        neural.NetworkTask(module, samples, untrained.indicators),
        torch.from_numpy(learn).to(where),
        torch.from_numpy(left_out).to(where),
        schedule,
        progress,
    )
    values = {name: value.float().cpu().numpy() for name, value in module.state_dict().items()}
    fitted = replace(untrained, weights=values)

    def predicted(some: Array | slice) -> Array:
        rows = left_out[some]
        return fitted.predict(fire[rows], training.given.at(rows), str(where))

    out_of_fold = ComputedFields((left_out.size, *targets.shape[1:]), predicted)
    return FittedMap(fitted, left_out, out_of_fold)


def _describe(training: TrainingSet, lift: Any, network: Network, scalars: int) -> NeuralMap:
    """The map before training, without weights."""
    fire, targets, architecture = training.fire, training.targets, network.architecture
    if architecture not in SIZES:
        raise PlumecastError(
            f"architecture '{architecture}' is unknown; choose from {', '.join(SIZES)}"
        )
    for name in sorted(set(network.sizes) - set(SIZES[architecture])):
        raise PlumecastError(
            f"'{name}' is not a size of a {architecture}; it has {', '.join(SIZES[architecture])}"
        )
    if len(fire.shape) != 3:
        raise PlumecastError(
            f"a network needs fields on a grid (y, x), got shape {fire.shape[1:]}; "
            "use the preset 'recommended'"
        )
    indicators = are_indicators(targets)
    scales, lowest, largest = target_sizes(targets)
    if (lowest < 0.0).any():
        raise PlumecastError(
            f"a network predicts non-negative fields, but the smallest training output is "
            f"{lowest.min():g}; use the preset 'recommended'"
        )
    return NeuralMap(
        lift=lift,
        architecture=architecture,
        sizes={**SIZES[architecture], **network.sizes},
        weights={},
        target_scales=np.where(indicators, 1.0, scales),
        limits=largest.astype(np.float64),
        indicators=tuple(indicators.tolist()),
        scalars=scalars,
        positions=True,
        shape=(int(fire.shape[1]), int(fire.shape[2])),
    )


def _scalars(scalars: Array | None, count: int, expected: int | None) -> Array:
    given = np.empty((count, 0)) if scalars is None else np.asarray(scalars)
    wanted = given.shape[-1] if expected is None else expected
    if given.shape != (count, wanted):
        raise PlumecastError(
            f"scalars have shape {given.shape}, not ({count}, {wanted}); pass one row per snapshot"
        )
    return np.ascontiguousarray(given, dtype=np.float32)


def _device(name: str | None) -> Any:
    torch = check_torch()
    if name is None:
        name = "cuda" if torch.cuda.is_available() else "cpu"
    try:
        return torch.empty(0, device=name).device
    except (RuntimeError, AssertionError) as error:
        raise PlumecastError(
            f"device '{name}' cannot be used here ({str(error).splitlines()[0]}); try 'cpu'"
        ) from error


def check_torch() -> Any:
    """PyTorch; raises if it is not installed."""
    return require("torch", "neural", "a neural network")


_SHARED: dict[str, Any] = {
    "settings": NeuralSettings,
    "fit": fit_neural_fields,
    "saved": (NeuralMap,),
    "extra": "neural",
}
UNET = Family(name="unet", title="U-Net", summary="a U-Net, trained with PyTorch", **_SHARED)
FNO = Family(
    name="fno",
    title="Fourier neural operator",
    summary="a Fourier neural operator, trained with PyTorch",
    **_SHARED,
)
