"""Passes that make several kernels one, or let one write where the next reads."""
