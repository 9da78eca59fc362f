"""Verify IR, watch a program from pass to pass, and find the rewrite that made it wrong."""
