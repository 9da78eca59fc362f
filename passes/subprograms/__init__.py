"""Searches over the subprograms of a program: found, priced, decided and recorded in one way."""
