"""Generate rules: enumerate small graphs, compare fingerprints, generalise, prune."""
