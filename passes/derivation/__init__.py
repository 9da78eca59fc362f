"""Derivation: programs beyond predefined operators, found by rules on scopes (EinNet)."""
