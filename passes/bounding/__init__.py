"""bound-dims: one program of fixed sizes for all sizes up to a bound."""
