// The further output of local normalisations, which stands in the options in C.
#pragma once

#include <string>
#include <utility>

#include "kiln/base/error.h"
#include "kiln/kiln.h"
#include "kiln/local_norm.h"

namespace kiln::capi {

/// `options` of a forward, which has no dmeans. Throws Error(invalid_argument) if it is given.
inline LocalNormOptions without_dmeans(LocalNormOptions options, const kiln_local_norm_options& given,
                                       const char* function) {
  if (given.dmeans == nullptr) return options;
  throw Error(ErrorCode::invalid_argument, std::string(function) + ": dmeans is not NULL",
              "it is an output of the gradients");
}

}  // namespace kiln::capi
