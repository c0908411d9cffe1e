"""The how-to page on weather: its files are read as it says."""

from __future__ import annotations


def test_give_the_weather(follow_page):
    printed = follow_page("give-the-weather.md")
    assert "[7.7" in printed  # 8 m/s from 255 degrees
    assert "['north' 'south'] ('fire', 'weather_hour', 'height')" in printed
    assert "log law (times 1.120)" in printed
    assert "grid point 40.500 N, 239.000 E; ground at 850 m, as stated" in printed
    assert "default cycle: 250 m at night, 2500 m at 15 h local time" in printed
    assert "('snapshot', 'weather_hour', 'height')" in printed
