"""Kernels to nests: plain loops (build.py), schedules as rewrites (rewrites.py), three forms."""
