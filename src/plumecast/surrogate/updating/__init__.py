"""Take new fires into a fitted surrogate without a new fit."""
