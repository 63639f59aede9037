// Kernels for processors with AVX-512 F, BW, DQ and VL.
#include "coll/reduce/kernels.inl"
