"""Graph substitutions, one at a time: a search over programs that backtracks (TASO, 2019)."""
