"""Physical constants and unit conversions, with their source."""

R_DRY = 287.0
"""Specific gas constant of dry air, J kg⁻¹ K⁻¹ (WRF: 287)."""

CP_DRY = 1005.0
"""Specific heat of dry air at constant pressure, J kg⁻¹ K⁻¹ (the paper; WRF: 7R/2 = 1004.5)."""

P0 = 1.0e5
"""Reference pressure of potential temperature, Pa."""

GRAVITY = 9.81
"""Gravitational acceleration, m s⁻² (WRF: 9.81)."""

M2_PER_ACRE = 4046.8564224
"""Square metres in an international acre (exact)."""

SURFACE_LAYER = 100.0
"""Winds up to this height above ground, m, count as winds near the ground."""

SURFACE_WIND_LIMIT = 60.0
"""Larger speeds, m s⁻¹, are not believed near the ground: the wind of a strong hurricane."""

ALOFT_WIND_LIMIT = 120.0
"""Larger speeds, m s⁻¹, are not believed at any height: more than the strongest jet streams."""
