"""How figures look, and maps of smoke."""
