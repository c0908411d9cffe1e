"""What smoke does: exposure at places, scenarios and their differences, solar power."""
