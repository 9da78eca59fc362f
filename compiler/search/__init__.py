"""`optimize`: which searches run, in which order, and what of their results is kept."""
