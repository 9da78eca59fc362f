"""Loop nests over scopes: points, rows, reductions, tiles, gathers."""
