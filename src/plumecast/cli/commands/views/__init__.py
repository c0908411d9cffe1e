"""Commands that show fires and their smoke."""
