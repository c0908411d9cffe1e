"""Commands that choose the settings of a surrogate, or add fires to it."""
