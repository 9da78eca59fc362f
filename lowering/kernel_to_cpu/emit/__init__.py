"""Write LLVM IR by readable Python: functions, scalars, vectors, element accesses."""
