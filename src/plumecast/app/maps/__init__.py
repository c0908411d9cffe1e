"""Maps of a source: what it shows, and the writers of HTML, PNG and KMZ."""

from plumecast.app.maps.draw import Drawn, draw_map

__all__ = ["Drawn", "draw_map"]
