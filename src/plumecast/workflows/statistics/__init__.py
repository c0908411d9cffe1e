"""Statistics of many fires: what is asked for, the labelled result, and its files."""
