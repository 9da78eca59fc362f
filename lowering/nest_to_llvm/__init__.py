"""Print nests for the CPU, as LLVM IR."""
