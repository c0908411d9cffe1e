"""The page for a planner: smoke on a map, at places, between scenarios, and its cost in energy."""
