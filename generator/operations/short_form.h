// Words that the short forms of several operations share (Operation::short_form()).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "kiln/generator/request.h"
#include "kiln/generator/window_axis.h"

namespace kiln {

/// "1x64x56x56".
std::string extents_words(const TensorSpec& spec);
/// One number where all axes agree: "3", "3x5".
std::string per_axis_words(const std::vector<int64_t>& values);
/// ", stride 2, pad 1", as far as they are not the defaults.
std::string steps_words(const WindowSteps& steps);
/// ", bias+relu"; nothing without stages.
std::string stages_words(const Request& request);

/// " f16 nhwc": the dtype if it is not f32, and the memory order if it is not the logical one.
std::string storage_words(const TensorSpec& spec);
/// The same with the dtype in any case.
std::string storage_words_with_dtype(const TensorSpec& spec);
/// " n=? constant weights": words about the call as a whole.
std::string call_words(const Request& request);
/// " f16 nhwc (w f8e4m3) n=?": how `operand` is stored, which operands have a dtype that does not follow from its own,
/// and call_words().
std::string operand_words(const Request& request, std::string_view operand);
/// "2x64x56x56 f16": shape of the result, and operand_words().
std::string result_words(const Request& request);

}  // namespace kiln
