"""Algorithms for convolutions and products: gemm, Winograd, FFT, transposed convolution."""
