"""Reduced-physics fire and smoke model: landscape, weather, fire spread, emission, transport.

The coupling is one-way: the wind drives the fire and transports its smoke, and neither fire nor
smoke changes the wind.
"""

from plumecast.base.errors import require

require("numba", "simulator", "the simulator")
