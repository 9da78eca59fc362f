"""Run CUDA kernels, and whole programs of them, on the CPU; docs/cuda.md says what it detects."""
