"""Compile modules to objects, keep them, and run a program's kernels over a pool of threads."""
