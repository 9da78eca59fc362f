"""Kernel dialect -> CUDA: readable kernels, a whole program, and what compiles and runs them."""
