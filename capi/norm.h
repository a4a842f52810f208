// Arguments of normalisations that stand in another place in C than in C++.
#pragma once

#include <fmt/format.h>

#include <optional>
#include <utility>

#include "kiln/base/error.h"
#include "kiln/kiln.h"
#include "kiln/norm.h"

namespace kiln::capi {

/// The axes of the options, kiln_norm_options or kiln_norm_gradient_options: an argument in C++.
template <class Given>
Axes axes_of(const Given& given, const char* function) {
  if (given.axis_count < 1 || given.axis_count > KILN_NORM_MAX_AXES) {
    throw Error(ErrorCode::invalid_argument, fmt::format("{}: axis_count is {}", function, given.axis_count),
                fmt::format("give 1 to {} axes", KILN_NORM_MAX_AXES));
  }
  Axes axes;
  for (int i = 0; i < given.axis_count; ++i) axes.axis[static_cast<size_t>(axes.count++)] = given.axes[i];
  return axes;
}

/// `options` with the mean that the forward saved: an argument in C.
inline NormGradientOptions with_mean(NormGradientOptions options, const std::optional<Tensor>& mean) {
  options.mean = mean;
  return options;
}

}  // namespace kiln::capi
