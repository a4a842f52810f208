// Modes of reduce and of its gradient.
#include "lib/types.cuh"

enum : int {  // as ReduceMode
  REDUCE_ADD,
  REDUCE_MUL,
  REDUCE_MIN,
  REDUCE_MAX,
  REDUCE_AMAX,
  REDUCE_MEAN,
  REDUCE_NORM1,
  REDUCE_NORM2,
  REDUCE_MUL_NO_ZEROS,
};
