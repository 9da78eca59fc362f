"""Register-blocked products: gemm, convolution, attention, products over tiles."""
