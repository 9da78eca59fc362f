"""Rules nobody wrote: enumerate small graphs, compare fingerprints, generalise, prune."""
