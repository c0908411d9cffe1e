"""Wind and weather of fires: read, units, true and grid north, profiles, and the mean wind.

A weather is a Dataset of hourly (u, v) at fixed heights and boundary-layer depths, for one fire or
for several; a wind is a weather without hours. Files → soundings at their own hours and heights →
completed by the default profile → hourly → given to snapshots (`with_weather`).
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
