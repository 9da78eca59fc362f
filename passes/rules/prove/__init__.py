"""Proofs of rules from operator properties: z3 and an e-graph."""
