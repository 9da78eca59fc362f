"""Why rows of benchmarks/operators.py are below 0.97, by name."""

REASONS: dict[str, str] = {}
