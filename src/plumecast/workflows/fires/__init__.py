"""Fires on their way into a store or a prediction: the growing store, and winds given for them."""
