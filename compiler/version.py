"""The version of isoform; pyproject.toml has it too."""

VERSION = "0.1.0"
