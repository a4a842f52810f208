// --shape: extents of a model's inputs, as lists and ranges.
#pragma once

#include <string>
#include <vector>

#include "kiln/frontends/onnx_inputs.h"
#include "kiln/model.h"

namespace kiln::cli {

/// The sizes that `given` texts name, in order: `[NAME=]1x3x224x224`; without a name, of the next input. Commas
/// separate several shapes, of which the first of each input belong together, and so on; an input with one shape has it
/// in every size. An extent may be a range (numbers.h). Without any text one size
/// without shapes. Throws Error(invalid_argument) for what is none of that, an input that is unknown or named twice,
/// lists of different lengths, and more than 4096 sizes.
std::vector<InputShapes> parse_shapes(const std::vector<std::string>& given, const OnnxInputs& inputs);

/// Gives `options` the shapes of one size, of all inputs: their batch in place of options.batch, which with
/// dynamic_batch is the most that there may be. Throws as OnnxInputs::resolve(), and Error(invalid_argument) for a
/// batch beyond that.
void use_shapes(ModelOptions& options, const InputShapes& shapes, const OnnxInputs& inputs);

}  // namespace kiln::cli
