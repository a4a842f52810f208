#include "descriptor/epilogue.h"

#include "descriptor/strided.h"

namespace kiln::descriptor {

int64_t stage_code(EpilogueStage stage) {
  return static_cast<int64_t>(stage) + 1;
}

void add_stages(Prelude& prelude, const std::vector<EpilogueStage>& stages, const std::optional<TensorSpec>& bias,
                const std::optional<TensorSpec>& residual) {
  std::vector<int64_t> codes;
  for (const EpilogueStage stage : stages) codes.push_back(stage_code(stage));
  prelude.constant("EPILOGUE_STAGES", static_cast<int64_t>(codes.size()));
  prelude.array("EPILOGUE", codes);
  prelude.type("TBias", bias ? bias->dtype : DType::f32);
  prelude.type("TResidual", residual ? residual->dtype : DType::f32);
  prelude.constant("BIAS_STRIDE", bias ? bias->strides.front() : 1);
  prelude.constant("BIAS_RUN", bias ? widest_vector(*bias, {0}, bias->extents.front()) : 1);
}

}  // namespace kiln::descriptor
