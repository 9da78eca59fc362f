"""Searches over the subprograms of a program, with one way to find, price, decide and record."""
