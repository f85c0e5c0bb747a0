#include <immintrin.h>

#include "nn/arch_ops.h"
#include "nn/cpu_kernels.h"

// After the includes: their inline functions stay fit for every processor.
#pragma GCC push_options
#pragma GCC target("avx512f,avx512bw,avx512dq,avx512vl,avx2,fma")

// In g++ 12's own header, falsely.
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"

#define TAHL_LEVEL avx512
#define TAHL_NAME "avx512"
#define TAHL_LANES 16
#define TAHL_SQUARES 8
#define TAHL_BF16 0
#define TAHL_INT8 0
#include "nn/cpu_kernels_impl.h"

#pragma GCC pop_options
