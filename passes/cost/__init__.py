"""Prices: what an op costs on a target, measured or modelled."""
