"""Fuels: the models of Scott and Burgan, and rasters of them → fuel load on a grid."""
