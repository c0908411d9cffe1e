"""What the server keeps: its world, models, fires and jobs. No HTTP."""
