"""Maps of fires and their smoke, and the live page."""
