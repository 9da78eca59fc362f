"""Floor 2: conversions between levels, importers and exporters, targets, code, runtimes."""
