"""Commands that answer: what smoke does to places, scenarios and plants; which fire to run next."""
