"""Checks of the fires of a store: findings per fire, duplicate runs."""
