"""Which fires are worth an expensive run: candidates, what a surrogate sees of them, the choice."""
