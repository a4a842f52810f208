/* Layout that compiled programs rely on: sizes, offsets and values of kiln/c/model.h. */
#include <kiln/c/model.h>

#define HOLDS(condition) _Static_assert(condition, #condition)

HOLDS(KILN_DTYPE_OF_MODEL == -1);
HOLDS(offsetof(kiln_model_options, dynamic_batch) == 4 && offsetof(kiln_model_options, batch) == 8);
HOLDS(offsetof(kiln_model_options, dtype) == 16 && offsetof(kiln_model_options, use_graph) == 28);
HOLDS(offsetof(kiln_model_options, tf32) == 32 && offsetof(kiln_model_options, fast) == 36);
HOLDS(offsetof(kiln_model_options, deterministic) == 40 && sizeof(kiln_model_options) == 48);
HOLDS(offsetof(kiln_model_info, input_count) == 8 && offsetof(kiln_model_info, weight_bytes) == 32);
HOLDS(offsetof(kiln_model_info, graph_count) == 72 && sizeof(kiln_model_info) == 88);
HOLDS(offsetof(kiln_model_tensor_info, name) == 8 && offsetof(kiln_model_tensor_info, extents) == 24);
HOLDS(sizeof(kiln_model_tensor_info) == 40);
HOLDS(offsetof(kiln_model_step_info, request) == 8 && sizeof(kiln_model_step_info) == 48);
