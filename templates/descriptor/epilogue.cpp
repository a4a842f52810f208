#include "descriptor/epilogue.h"

namespace kiln::descriptor {
namespace {

// The codes of lib/epilogue.cuh.
int64_t stage_code(EpilogueStage stage) {
  switch (stage) {
    case EpilogueStage::bias:
      return 1;
    case EpilogueStage::add:
      return 2;
    case EpilogueStage::relu:
      return 3;
    case EpilogueStage::clip:
      return 4;
  }
  return 0;
}

}  // namespace

void add_stages(Prelude& prelude, const std::vector<EpilogueStage>& stages, const std::optional<TensorSpec>& bias,
                const std::optional<TensorSpec>& residual) {
  std::vector<int64_t> codes;
  for (const EpilogueStage stage : stages) codes.push_back(stage_code(stage));
  prelude.constant("EPILOGUE_STAGES", static_cast<int64_t>(codes.size()));
  if (codes.empty()) codes.push_back(0);
  prelude.array("EPILOGUE", codes);
  prelude.type("TBias", bias ? bias->dtype : DType::f32);
  prelude.type("TResidual", residual ? residual->dtype : DType::f32);
  prelude.constant("BIAS_STRIDE", bias ? bias->strides.front() : 1);
}

}  // namespace kiln::descriptor
