"""Passes that move, merge and read through scopes that only copy data."""
