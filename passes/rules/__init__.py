"""Rewrite rules of the graph level: the language, its checks and proofs, matching in graphs."""
