"""All substitutions at once: equality saturation, globally good extraction (TENSAT, 2021)."""
