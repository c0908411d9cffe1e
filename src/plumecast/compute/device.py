"""The resources of a fit: the device of its arrays, a memory limit and an executor.

Arrays are NumPy arrays on the host, and PyTorch tensors or CuPy arrays on a GPU. These libraries
are imported only when their device is requested.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from plumecast.base.errors import PlumecastError, require
from plumecast.compute.arrays import Array, Rows, is_cupy_array, is_torch_array, read_rows
from plumecast.compute.blocks import Runner
from plumecast.compute.memory import FLOAT, READ, RESERVE, parse_memory, show_memory

DEVICES = ("cpu", "cuda", "cupy", "torch")
"""NumPy; PyTorch on a GPU ("cuda:1" for the second); CuPy on a GPU; PyTorch on the CPU."""


@dataclass(frozen=True, slots=True)
class Device:
    """A processor with memory for arrays."""

    name: str
    put: Callable[[Array], Array]  # copies a NumPy array to the device
    free_bytes: Callable[[], int | None]  # free memory of a GPU; None on the host

    @property
    def is_host(self) -> bool:
        """Whether arrays stay in NumPy."""
        return self.name == "cpu"

    def rows(self, matrix: Rows) -> Rows:
        """A matrix whose rows are copied to the device when they are read."""
        return matrix if self.is_host else DeviceRows(self, matrix)


@dataclass(frozen=True, slots=True)
class DeviceRows:
    """A matrix on the host or on disk, whose rows are copied to a device when they are read."""

    device: Device
    matrix: Rows

    @property
    def shape(self) -> tuple[int, ...]:
        """(M, N)."""
        return tuple(self.matrix.shape)

    def read(self, rows: slice) -> Array:
        """The rows on the device."""
        return self.device.put(read_rows(self.matrix, rows))


HOST = Device("cpu", lambda array: array, lambda: None)


def no_progress(step: str) -> None:
    """Report nothing."""


@dataclass(frozen=True, slots=True)
class Budget:
    """What a fit may use: a device, bytes of memory and an executor; and how it reports progress.

    Without a limit all snapshots are in memory; with one they are read in blocks that fit into it.
    """

    device: Device = HOST
    limit: int | None = None  # bytes
    runner: Runner | None = None  # the executor; None: this process
    progress: Callable[[str], None] = no_progress
    taken: float = 0.0  # bytes of the limit that are in use already

    def put(self, array: Array) -> Array:
        """A NumPy array, copied to the device."""
        return self.device.put(array)

    def with_taken(self, size: float) -> Budget:
        """The same resources with `size` more bytes in use."""
        return replace(self, taken=self.taken + size)


DEFAULT_BUDGET = Budget()
"""The host, with all snapshots in memory."""


def choose_device(name: str) -> Device:
    """The device with this name; raises, with the devices that were found, if it is missing."""
    if name == "cpu":
        return HOST
    if name == "torch" or name == "cuda" or name.startswith("cuda:"):
        return _torch_device("cpu" if name == "torch" else name)
    if name == "cupy":
        return _cupy_device()
    raise PlumecastError(f"device '{name}' is unknown; choose from {', '.join(DEVICES)}")


def _torch_device(name: str) -> Device:
    torch = require("torch", "neural", f"device '{name}'")
    if name != "cpu":
        _check_gpus(name, _torch_gpus(torch), f"PyTorch {torch.__version__}")

    def put(array: Array) -> Array:
        host = np.ascontiguousarray(array)
        # PyTorch shares the memory of a NumPy array and warns if that memory is read-only.
        return torch.from_numpy(host if host.flags.writeable else host.copy()).to(name)

    def free_bytes() -> int | None:
        return None if name == "cpu" else int(torch.cuda.mem_get_info(name)[0])

    return Device("torch" if name == "cpu" else name, put, free_bytes)


def free_bytes(array: Array) -> int | None:
    """Free memory of the GPU that holds an array; None if it is in the memory of the host.

    Memory that PyTorch or CuPy keeps for new arrays counts as free.
    """
    if is_torch_array(array) and array.is_cuda:
        import torch

        kept = torch.cuda.memory_reserved(array.device) - torch.cuda.memory_allocated(array.device)
        return int(torch.cuda.mem_get_info(array.device)[0]) + int(kept)
    if is_cupy_array(array):
        import cupy

        pool = cupy.get_default_memory_pool()
        return int(cupy.cuda.runtime.memGetInfo()[0]) + int(pool.free_bytes())
    return None


def _torch_gpus(torch: Any) -> list[str]:
    if not torch.cuda.is_available():
        return []
    return [torch.cuda.get_device_name(i) for i in range(torch.cuda.device_count())]


def _check_gpus(name: str, found: list[str], library: str) -> None:
    text = name.partition(":")[2] or "0"
    if not found:
        raise PlumecastError(
            f"device '{name}' needs a GPU, but {library} finds none; install a driver and a "
            "build with CUDA, or use device 'cpu'"
        )
    if not text.isdigit() or int(text) >= len(found):
        raise PlumecastError(
            f"device '{name}' does not exist; {library} finds {len(found)} GPU(s): "
            f"{', '.join(found)}"
        )


def _cupy_device() -> Device:
    try:
        import cupy
    except ImportError:
        raise PlumecastError(
            "device 'cupy' needs CuPy, which is not installed; pip install cupy-cuda13x (or "
            "cupy-cuda12x, to match the driver), or use device 'cpu'"
        ) from None
    try:
        count = int(cupy.cuda.runtime.getDeviceCount())
    except cupy.cuda.runtime.CUDARuntimeError:
        count = 0
    _check_gpus("cupy", ["GPU"] * count, f"CuPy {cupy.__version__}")
    return Device("cupy", cupy.asarray, lambda: int(cupy.cuda.runtime.memGetInfo()[0]))


@contextlib.contextmanager
def naming_memory(device: Device, advice: Callable[[], str]) -> Iterator[None]:
    """Turn the out-of-memory error of a device into one line that names the next step."""
    try:
        yield
    except (RuntimeError, MemoryError) as error:
        # PyTorch and CuPy both use this class name; neither needs to be installed.
        if device.is_host or type(error).__name__ != "OutOfMemoryError":
            raise
        free = device.free_bytes() or 0
        raise PlumecastError(
            f"device '{device.name}' ran out of memory ({free / 1e9:.1f} GB free now); {advice()}"
        ) from error


def choose_budget(
    device: str,
    memory: str | int | None,
    runner: Runner | None,
    progress: Callable[[str], None],
    *,
    size: tuple[int, int],
    cluster_memory: str,
) -> Budget:
    """The resources of a fit of `size` = (snapshots, cells of inputs and outputs).

    If not all snapshots fit on a GPU, its free memory is the limit. On a cluster the limit of each
    process is `cluster_memory` if none is given.
    """
    if runner is not None:
        memory = memory or cluster_memory
        refuse_device(device)
    place = choose_device(device)
    limit = None if memory is None else parse_memory(memory)
    free = place.free_bytes()
    rows, cells = size
    needed = READ * rows * cells + 5 * FLOAT * min(rows, cells) ** 2
    if free is not None and needed > RESERVE * free:
        limit = free if limit is None else min(limit, free)
    return Budget(place, limit, runner, progress)


def refuse_device(device: str) -> None:
    """Raise for a device other than the CPU; workers of a cluster have no other."""
    if device != "cpu":
        raise PlumecastError(f"give a runner or device '{device}', not both")


def advice(resources: Budget, size: tuple[int, int]) -> str:
    """The advice in the error message when a device runs out of memory."""
    rows, cells = size
    free = resources.device.free_bytes() or 0
    fit = int(RESERVE * free // (READ * cells))
    return (
        f"{rows} snapshots need too much, about {min(fit, rows)} would fit; give a memory limit of "
        f"at most {show_memory(0.5 * free)} to fit in blocks"
    )
