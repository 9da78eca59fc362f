"""Compile kernel programs to one native call on the CPU."""
