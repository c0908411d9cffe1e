"""The examples of CONTRIBUTING.md, "To add something": registered as shown, and trained with."""

from __future__ import annotations

import inspect
import re
from dataclasses import dataclass, replace

import numpy as np
import pytest

import plumecast as pc
from plumecast.base import names
from plumecast.base.values import setting
from plumecast.cli.options import options_of, settings_given
from plumecast.operators import targets
from plumecast.operators.carried import transport
from plumecast.operators.settings import FAMILIES, choose_settings, settings_classes
from plumecast.operators.spectral.fit import SpectralSettings
from support.places import REPOSITORY
from support.snapshots import make_snapshots
from support.weather_fires import weather_fires

PAGE = (REPOSITORY / "CONTRIBUTING.md").read_text(encoding="utf-8")
NAME, TARGET, CARRIED, OPTION, _LAYER = re.findall(
    r"^```python\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL
)


def entry(code: str, module: object) -> dict:
    """The entry of a table as its module would read it."""
    return eval(f"{{{code}}}", vars(module))


@pytest.fixture(scope="module")
def data():
    return make_snapshots()


def test_an_output_is_one_entry(data, monkeypatch):
    (added,) = eval(f"({NAME.strip()},)", vars(names))
    for table in (names.OUTPUTS, names.TABLE):
        monkeypatch.setitem(table, added.name, added)
    below = (2.0 * data.smoke).assign_attrs(data.smoke.attrs | added.attrs)
    both = data.assign({added.name: below})
    pc.data.validate_snapshots(both)
    surrogate = pc.fit_surrogate(both, "quick", outputs=["smoke", added.name])
    predicted = surrogate.predict(both)
    assert surrogate.nonnegative
    assert predicted[added.name].attrs["units"] == added.units
    np.testing.assert_allclose(predicted[added.name], 2.0 * predicted.smoke, rtol=0.05, atol=0.05)
    with pytest.raises(pc.PlumecastError, match=added.name):
        pc.data.validate_snapshots(both.assign({added.name: -below}))


@pytest.mark.parametrize("chosen", ["root", ("root", "smoke")], ids=str)
def test_a_target_is_one_entry(data, monkeypatch, tmp_path, chosen):
    for name, added in entry(TARGET, targets).items():
        monkeypatch.setitem(targets.TARGETS, name, added)
    surrogate = pc.fit_surrogate(data, "quick", targets=chosen)
    predicted = surrogate.predict(data)
    usual = pc.fit_surrogate(data, "quick").predict(data)
    error, expected = (float(np.abs(own - data.smoke).mean()) for own in (predicted, usual))
    assert error < 1.5 * expected
    loaded = pc.load_surrogate(surrogate.save(tmp_path / "root.plume"))
    np.testing.assert_array_equal(loaded.predict(data), predicted)


def test_a_physics_channel_is_one_entry(monkeypatch):
    for name, added in entry(CARRIED, transport).items():
        monkeypatch.setitem(transport.CARRIED, name, added)
    fires = weather_fires(6)
    surrogate = pc.fit_surrogate(fires, "quick", physics="lowest", layers=1)
    assert surrogate.training["physics"] == "lowest"
    assert surrogate.operator.physics.groups == (0, 2)
    whole = pc.fit_surrogate(fires, "quick", physics="column", layers=1).predict(fires)
    assert not np.array_equal(surrogate.predict(fires), whole)


def test_an_option_is_one_field(monkeypatch):
    fields = {}
    exec(OPTION, {"setting": setting}, fields)
    changed = dataclass(frozen=True)(type("Changed", (SpectralSettings,), fields))
    monkeypatch.setitem(FAMILIES, "spectral", replace(FAMILIES["spectral"], settings=changed))
    options = inspect.signature(options_of(*settings_classes())).parameters
    assert options["sharpness"].default.help == "Exponent of the predicted smoke."
    typed = dict.fromkeys(options) | {"family": "spectral", "sharpness": 2.0}
    settings = choose_settings(**settings_given(typed, *settings_classes()))
    assert settings.family_settings.sharpness == 2.0
    assert settings.record()["sharpness"] == 2.0
