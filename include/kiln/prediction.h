// Predicted times of requests, by Kiln's own estimates.
#pragma once

#include "kiln/base/cxx20.h"
#include "kiln/generator/request.h"

namespace kiln {

/// Predicted seconds, on an A100, of the best variant of `request`, which must be complete. No device is asked, so the
/// number is the same on every machine. It serves to compare requests that could stand for one another, such as one
/// layer in two layouts; tuning measures the time on a device. Throws Error(unsupported), with the reasons, if no
/// algorithm serves the request. Thread-safe.
double predicted_seconds(const Request& request);

/// The same, but returns `unserved` if no algorithm serves the request.
double predicted_seconds(const Request& request, double unserved);

}  // namespace kiln
