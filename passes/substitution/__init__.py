"""Graph substitutions, one at a time: a search over programs with backtracking (TASO, 2019)."""
