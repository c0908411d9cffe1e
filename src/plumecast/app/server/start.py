"""Start the server: prepare a store and a model, listen, and end cleanly."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import os
import signal
import socket
import warnings
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

import h11
import numpy as np
import uvicorn
import xarray as xr
from uvicorn.protocols.http.h11_impl import H11Protocol

from plumecast.app.server.application import make_application
from plumecast.app.server.fires import LiveFire
from plumecast.app.server.kept import Limits
from plumecast.app.server.models import (
    FEWEST,
    Model,
    Models,
    Task,
    new_path,
    saved_model,
    train_and_score,
)
from plumecast.app.server.page import LivePage, Store
from plumecast.app.server.world import live_world, store_settings
from plumecast.base.checkpoints import recorded_interval
from plumecast.base.errors import ArgumentError, PlumecastError
from plumecast.base.names import SIMULATION, SMOKE
from plumecast.compute.resources import Resources
from plumecast.data.store import open_snapshots
from plumecast.surrogate.load import load_surrogate
from plumecast.workflows.simulate import Ground, simulate
from plumecast.workflows.train import DEFAULT_PRESET

PRESET, IGNITIONS = "weathers", 32
"""The ensemble that is made if no store is given: every fire has a weather of its own."""

OWN_CHOICES: Mapping[str, Any] = MappingProxyType(
    {"frame": "wind", "physics": "column", "layers": 1}
)
"""Settings for that ensemble, stated, so that the first start does not search for them: one layer
on carried smoke fits and predicts fastest."""

ARRIVAL = 15.0
"""Seconds in which a request must have arrived, its header and its body."""

MOST_WAITING, MOST_OF_ADDRESS, MOST = 32, 200, 400
"""Connections of one address that may wait for the rest of a request, beyond which the oldest is
closed; all connections of one address; and those of all."""

_GRACE = 2  # s for open connections when the server ends

Step = Callable[[str], None]


def default_folder(data: str | Path | None) -> Path:
    """The folder of the page in the user's cache; one for every store."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    name = "live"
    if data is not None:
        name += f"-{hashlib.sha256(str(Path(data).resolve()).encode()).hexdigest()[:12]}"
    return Path(base) / "plumecast" / name


FIRES = "fires.zarr"
"""The store of that ensemble in the folder of the page."""


def is_made(folder: Path) -> bool:
    """Whether the ensemble of the page and a surrogate are in its folder from an earlier start."""
    return (folder / FIRES).exists() and any(folder.glob("*.plume"))


def make_fires(folder: Path, progress: Callable[[int, int, str], object], workers: int) -> Path:
    """Simulate the small ensemble of the page, unless it is in the folder; return its store."""
    path = folder / FIRES
    simulate(
        path, preset=PRESET, ignitions=IGNITIONS, workers=workers,
        resources=Resources(progress=progress),
    )  # fmt: skip
    return path


def prepare(
    models: Sequence[Path],
    data: Path | None,
    folder: Path,
    *,
    ground: Ground | None = None,
    limits: Limits | None = None,
    choices: Mapping[str, Any] = MappingProxyType({}),
    step: Step = lambda text: None,
) -> LivePage:
    """The page of models and a store; without a model, one is trained on the store.

    `choices` are settings of that training besides its preset.
    Models that were trained here before are in the folder and are offered again.
    """
    folder.mkdir(parents=True, exist_ok=True)
    limits = limits or Limits()
    store = None
    if data is not None:
        snapshots = open_snapshots(data).load()
        store = Store(snapshots, recorded_interval(snapshots[SMOKE].attrs) or 1.0)
    offered = [Model(path.stem, load_surrogate(path)) for path in models]
    if offered:
        grid = offered[0].surrogate.grid
    elif store is not None:
        grid = store.snapshots[["y", "x"]].coords.to_dataset()
    else:
        raise PlumecastError("there is neither a model nor a store; give one of them")
    paths = sorted(folder.glob("*.plume"), key=lambda path: path.stat().st_mtime)
    offered = [*map(saved_model, paths), *offered]
    offered = [model for model in offered if _same_grid(model.surrogate.grid, grid)]
    if not offered:
        assert store is not None
        assert data is not None
        offered = [_train_first(store, data, folder, choices, step)]
    settings = store_settings(store.snapshots.attrs) if store else None
    settings = settings or offered[-1].surrogate.training.get(SIMULATION)
    interval = recorded_interval(offered[-1].surrogate.outputs.fields[0].attrs)
    checkpoints = None
    if store is not None:
        interval = store.interval
        checkpoints = max(1, round(float(store.snapshots["hours"].values.max()) / interval))
        if "crs" in store.snapshots.variables:
            grid = grid.assign_coords(crs=store.snapshots["crs"])
    world = live_world(
        grid, settings, ground or Ground(), interval=interval, checkpoints=checkpoints
    )
    kept = Models(limits.models)
    for model in offered:
        kept.add(model)
    return LivePage(world, kept, folder, store, None if data is None else str(data), limits)


def _same_grid(one: xr.Dataset, other: xr.Dataset) -> bool:
    return all(np.array_equal(one[axis].values, other[axis].values) for axis in "yx")


def _train_first(
    store: Store, data: Path, folder: Path, choices: Mapping[str, Any], step: Step
) -> Model:
    train, test = store.split()
    if len(train) < FEWEST:
        raise PlumecastError(
            f"{data} has {len(store.ignitions)} ignitions, too few to train on some and score on "
            "others; give a trained surrogate, or add fires"
        )
    path = new_path(folder, DEFAULT_PRESET)
    task = Task(str(data), train, test, {"preset": DEFAULT_PRESET, **choices}, str(path))
    train_and_score(task, step)
    return saved_model(path)


def warm_up(page: LivePage) -> None:
    """Light one fire, so that everything is compiled and read before the first click."""
    world = page.world
    if world.simulator is None:
        return
    rows, columns = np.nonzero(world.ground.burnable)
    middle = rows.size // 2
    cell = (int(rows[middle]), int(columns[middle]))
    wanted: dict[str, Any] = {"drought": "medium"}
    if world.own_weather:
        wanted |= {"surface": (6.0, 270.0), "aloft": (12.0, 270.0), "hour": 12.0}
    fire = LiveFire([cell], world.weather(wanted), page.models.get(None), world, {})
    with warnings.catch_warnings(), contextlib.suppress(PlumecastError):
        fire.predict(world.burn([cell], fire.weather, 1))


class _Connection(H11Protocol):
    """A connection that must send its requests whole and in time, and leaves room for others."""

    _deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to wait for the first request."""
        super().connection_made(transport)
        self._watch()
        address = self.client[0] if self.client else None
        beside = [
            item for item in self.connections
            if isinstance(item, _Connection) and item.client and item.client[0] == address
        ]  # fmt: skip
        waiting = {item: item._deadline.when() for item in beside if item._deadline is not None}
        if len(waiting) > MOST_WAITING:
            oldest = min(waiting, key=waiting.__getitem__)
            oldest.transport.abort()
            self.connections.discard(oldest)  # it counts no longer, though it is closed later
        elif len(beside) > MOST_OF_ADDRESS:
            self.limit_concurrency = 0  # its requests are answered with 503

    def data_received(self, data: bytes) -> None:
        """Bytes that come late do not move the deadline."""
        super().data_received(data)
        self._watch()

    def connection_lost(self, exc: Exception | None) -> None:
        """Wait no longer."""
        self._stop()
        super().connection_lost(exc)

    def _watch(self) -> None:
        if self.conn.their_state not in (h11.IDLE, h11.SEND_BODY):
            self._stop()
        elif self._deadline is None:
            self._deadline = self.loop.call_later(ARRIVAL, self.transport.abort)

    def _stop(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None


class _Server(uvicorn.Server):
    """A server that ends at the first signal, with its fires and jobs."""

    def __init__(self, config: uvicorn.Config, page: LivePage, ready: Callable[[], object]) -> None:
        super().__init__(config)
        self._page, self._ready = page, ready

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Handle Ctrl-C and SIGTERM here; they do not go on to the rest of the program."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            with contextlib.suppress(NotImplementedError, RuntimeError, ValueError):
                loop.add_signal_handler(number, self.end)
        yield

    def end(self) -> None:
        """Stop jobs and streams, then the server."""
        self._page.close()
        self.should_exit = True

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listen, then say so."""
        await super().startup(sockets)
        if self.started:
            self._ready()


def listen(host: str, port: int) -> socket.socket:
    """A socket that is bound, so that a port that is taken is known before any work."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # asyncio sends without delay only where the protocol is named: or answers wait some 40 ms.
    bound = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        bound.bind((host, port))
    except (OSError, OverflowError) as error:  # the second for a port beyond 65535
        bound.close()
        why = error.strerror if isinstance(error, OSError) else "ports are 0 to 65535"
        advice = "choose another port, or 0 for any that is free"
        problem = f"cannot be used on {host} ({why})"
        raise ArgumentError("port", port, advice, problem=problem) from None
    return bound


def run(
    page: LivePage,
    bound: socket.socket,
    *,
    names: Collection[str] = (),
    ready: Callable[[], object] = lambda: None,
) -> None:
    """Serve a page until Ctrl-C or SIGTERM."""
    server = make_server(page, names=names, ready=ready)
    try:
        asyncio.run(server.serve([bound]))
    finally:
        page.close()
        bound.close()


def make_server(
    page: LivePage,
    *,
    names: Collection[str] = (),
    ready: Callable[[], object] = lambda: None,
) -> _Server:
    """The server of a page: `serve` listens until `end`."""
    config = uvicorn.Config(
        make_application(page, names=names), log_level="error", access_log=False,
        timeout_graceful_shutdown=_GRACE, timeout_keep_alive=20, limit_concurrency=MOST,
        server_header=False, ws="none", lifespan="off", h11_max_incomplete_event_size=65_536,
        http=_Connection,
    )  # fmt: skip
    return _Server(config, page, ready)


def url_of(bound: socket.socket, host: str) -> str:
    """The address to open in a browser on this machine."""
    port = bound.getsockname()[1]
    name = "127.0.0.1" if host in ("0.0.0.0", "") else f"[{host}]" if ":" in host else host
    return f"http://{name}:{port}/"


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach a host."""
    return host in ("localhost", "::1") or host.startswith("127.")
