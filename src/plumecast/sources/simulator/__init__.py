"""A reduced-physics fire and smoke model: landscape, weather, fire spread, emission, transport.

One-way coupled: the wind drives the fire and carries its smoke, and neither acts back on the wind.
"""

from plumecast.base.extras import require

require("numba", "simulator", "the simulator")
