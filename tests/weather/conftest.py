"""A weather file, written and read."""

from __future__ import annotations

import pytest

from plumecast.weather.read import read_weather


@pytest.fixture
def read(tmp_path):
    """Read a weather from a text, by default that of a table."""

    def call(text, name="weather.csv", **options):
        (tmp_path / name).write_text(text, encoding="utf-8")
        return read_weather(tmp_path / name, **options)

    return call
