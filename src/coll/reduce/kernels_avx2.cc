// Kernels for processors with AVX2.
#include "coll/reduce/kernels.inl"
