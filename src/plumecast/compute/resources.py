"""Where and with what a call computes: a device, a memory limit, a cluster, reports of progress.

Arrays are NumPy arrays on the host, and PyTorch tensors or CuPy arrays on a GPU. These libraries
are imported only when their device is requested.
"""

from __future__ import annotations

import contextlib
import ctypes
import math
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np

from plumecast.base.errors import PlumecastError, require
from plumecast.compute.arrays import Array, Rows, is_cupy_array, is_torch_array, read_rows
from plumecast.compute.blocks import Runner

# -- memory

_SIZE = re.compile(r"\s*([\d.]+)\s*([KMGT]?)(i?)B?\s*", re.IGNORECASE)

FLOAT = 8
"""Bytes of a number in double precision."""

READ = 24
"""Bytes per value of a block that is read: as stored, in float64, checked and centred."""

RESERVE = 0.75
"""Share of a limit that plans may use. The rest is for memory that no plan counts: buffers of
readers and of BLAS, and fragmentation."""


def parse_memory(text: str | int | float) -> int:
    """Bytes of "2GB", "512MiB" or a plain number.

    >>> parse_memory("2GB"), parse_memory("1.5 KiB")
    (2000000000, 1536)
    """
    size = _SIZE.fullmatch(str(text))
    try:
        number = float(size[1]) if size else math.nan
    except ValueError:
        number = math.nan
    if size is None or not 0.0 < number < math.inf:
        raise PlumecastError(f"memory '{text}' is not a size; write for example 2GB or 512MiB")
    thousand = 1024 if size[3] else 1000
    return int(number * thousand ** ["", "K", "M", "G", "T"].index(size[2].upper()))


def show_memory(size: float) -> str:
    """Bytes as text with a unit, such as "1.5 GB"."""
    for unit, factor in (("GB", 1e9), ("MB", 1e6)):
        if size >= factor:
            return f"{size / factor:.3g} {unit}"
    return f"{size / 1e3:.3g} kB"


def rows_within(limit: int, *, fixed: float, per_row: float, what: str, most: int) -> int:
    """Number of rows that fit into a limit beside `fixed` bytes, at most `most`.

    Raises if not even one row fits; `what` names the computation in the message.
    """
    rows = int((RESERVE * limit - fixed) // per_row)
    if rows < 1:
        needed = (fixed + per_row) / RESERVE
        raise PlumecastError(
            f"{what} needs at least {show_memory(needed)} of memory, the limit is "
            f"{show_memory(limit)}; raise the limit, or use fewer cells, modes or channels"
        )
    return min(rows, most)


@cache
def keep_freed_memory() -> None:
    """Let the GNU C library keep freed blocks of up to 32 MB for the next array of this process.

    It returns freed memory to the system above a threshold, and a new array then costs one page
    fault per 4 kB, more than the arithmetic on it. The thresholds grow with the blocks that a
    process frees, unless the environment sets one of them, as Dask does for its workers. Here they
    get the largest values that they would grow to. Other C libraries are not affected.
    """
    trim_threshold, mmap_threshold, block = -1, -3, 32 * 2**20  # of mallopt, in malloc.h
    with contextlib.suppress(AttributeError, OSError, TypeError):
        change = ctypes.CDLL(None).mallopt
        change(mmap_threshold, block)
        change(trim_threshold, 2 * block)


# -- devices

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
        count = torch.cuda.device_count() if torch.cuda.is_available() else 0
        gpus = [torch.cuda.get_device_name(number) for number in range(count)]
        _check_gpus(name, gpus, f"PyTorch {torch.__version__}")

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


def _check_gpus(name: str, gpus: list[str], library: str) -> None:
    if not gpus:
        raise PlumecastError(
            f"device '{name}' needs a GPU, but {library} finds none; install a driver and a "
            "build with CUDA, or use device 'cpu'"
        )
    number = name.partition(":")[2] or "0"
    if not number.isdigit() or int(number) >= len(gpus):
        raise PlumecastError(
            f"device '{name}' does not exist; {library} finds {len(gpus)} GPU(s): {', '.join(gpus)}"
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


def refuse_device(device: str) -> None:
    """Raise for a device other than the CPU; workers of a cluster have no other."""
    if device != "cpu":
        raise PlumecastError(f"give a runner or device '{device}', not both")


# -- what a fit may use, and what a user asks for


def silent(done: int, total: int, what: str) -> None:
    """Report nothing."""


def no_progress(step: str) -> None:
    """Report nothing, of steps without a count."""


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


def advice(resources: Budget, size: tuple[int, int]) -> str:
    """The advice in the error message when a device runs out of memory."""
    rows, cells = size
    free = resources.device.free_bytes() or 0
    fit = int(RESERVE * free // (READ * cells))
    return (
        f"{rows} snapshots need too much, about {min(fit, rows)} would fit; give a memory limit of "
        f"at most {show_memory(0.5 * free)} to fit in blocks"
    )


def hears_names(progress: Callable[[str], object]) -> Callable[[int, int, str], object]:
    """A callback of an earlier version, which hears only the name of each step."""
    return lambda done, total, what: progress(what)


def hears_counts(progress: Callable[[int, int], object]) -> Callable[[int, int, str], object]:
    """A callback of an earlier version, which hears only how much of the work is done."""
    return lambda done, total, what: progress(done, total)


@dataclass(frozen=True, slots=True)
class Resources:
    """Where to compute (`device`, `runner`), in how much `memory`, and what to tell of progress.

    `device` is "cpu", "cuda", "cuda:1", "cupy" or "torch". `memory` ("2GB") is a limit within which
    fields are read in blocks from their store. A `runner` (`pc.cluster`) computes on a cluster.
    `progress(done, total, what)` is called as work is done; `total` is 0 for a step that is not
    counted.
    """

    device: str = "cpu"
    memory: str | int | None = None
    runner: Runner | None = None
    progress: Callable[[int, int, str], object] = silent

    @property
    def lazy(self) -> bool:
        """Whether fields stay in their store and are read in blocks."""
        return self.memory is not None or self.runner is not None

    def step(self, what: str) -> None:
        """Report that a step begins that is not counted."""
        self.progress(0, 0, what)

    def within(self, step: str) -> Resources:
        """The same resources, with reports that name the step they are part of."""
        return self.reporting(
            lambda done, total, what: self.progress(done, total, f"{step}: {what}")
        )

    def reporting(self, progress: Callable[[int, int, str], object]) -> Resources:
        """The same resources with other reports."""
        return replace(self, progress=progress)

    def quiet(self) -> Resources:
        """The same resources without reports."""
        return self.reporting(silent)

    def budget(self, *, size: tuple[int, int], cluster_memory: str) -> Budget:
        """What a fit of `size` = (snapshots, cells of inputs and outputs) may use here.

        If not all snapshots fit on a GPU, its free memory is the limit. On a cluster the limit of
        each process is `cluster_memory` if none is given.
        """
        memory = self.memory
        if self.runner is not None:
            memory = memory or cluster_memory
            refuse_device(self.device)
        device = choose_device(self.device)
        limit = None if memory is None else parse_memory(memory)
        free = device.free_bytes()
        rows, cells = size
        needed = READ * rows * cells + 5 * FLOAT * min(rows, cells) ** 2
        if free is not None and needed > RESERVE * free:
            limit = free if limit is None else min(limit, free)
        return Budget(device, limit, self.runner, self.step)

    def __reduce__(self) -> Any:
        return type(self), (self.device, self.memory)  # a worker computes locally and is silent


LOCAL = Resources()
"""The processor of this machine, all in memory, no reports."""
