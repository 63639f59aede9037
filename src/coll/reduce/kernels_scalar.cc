// Kernels for every processor.
#include "coll/reduce/kernels.inl"
