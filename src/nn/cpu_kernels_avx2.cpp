#include "nn/arch_ops.h"
#include "nn/cpu_kernels.h"

// After the includes: their inline functions stay fit for every processor.
#pragma GCC push_options
#pragma GCC target("avx2,fma")

#define TAHL_LEVEL avx2
#define TAHL_NAME "avx2"
#define TAHL_LANES 8
#define TAHL_SQUARES 4
#define TAHL_BF16 0
#define TAHL_INT8 0
#include "nn/cpu_kernels_impl.h"

#pragma GCC pop_options
