#include "nn/arch_ops.h"
#include "nn/cpu_kernels.h"

// Whatever the whole program is compiled for: SSE at least.
#define TAHL_LEVEL baseline
#define TAHL_NAME "baseline"
#define TAHL_LANES 4
#define TAHL_SQUARES 4
#define TAHL_BF16 0
#define TAHL_INT8 0
#include "nn/cpu_kernels_impl.h"
