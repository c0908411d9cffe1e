"""Optional dependencies: import one, or say in one line how to install it."""

from __future__ import annotations

import importlib
from typing import Any

from plumecast.base.errors import PlumecastError

_TITLES = {"torch": "PyTorch", "distributed": "Dask distributed"}


def require(module: str, extra: str, what: str) -> Any:
    """Import `module`, which `what` needs and the extra `extra` installs.

    An error inside an installed module is not caught: installing it again would not help.
    """
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name != module.partition(".")[0]:
            raise
        title = _TITLES.get(module, module)
        raise PlumecastError(f"{what} needs {title}; pip install 'plumecast[{extra}]'") from None
