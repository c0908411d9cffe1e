"""Commands about the paper: its studies and their report."""
