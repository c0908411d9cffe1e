"""Weather and smoke transport."""
