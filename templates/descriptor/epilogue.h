// The constants of an epilogue's stages.
#pragma once

#include <optional>
#include <vector>

#include "kiln/generator/request.h"
#include "kiln/generator/specialise.h"

namespace kiln::descriptor {

/// The code of lib/epilogue.cuh for a stage.
int64_t stage_code(EpilogueStage stage);

/// The constants of lib/epilogue.cuh but for those of the blend.
void add_stages(Prelude& prelude, const std::vector<EpilogueStage>& stages, const std::optional<TensorSpec>& bias,
                const std::optional<TensorSpec>& residual);

}  // namespace kiln::descriptor
