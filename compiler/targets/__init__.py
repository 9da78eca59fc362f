"""Compile a program for a target, and run it there."""
