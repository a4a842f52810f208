// What requests cost by Kiln's own estimates.
#pragma once

#include "kiln/base/cxx20.h"
#include "kiln/generator/request.h"

namespace kiln {

/// Seconds that the best of Kiln's variants of `request`, a complete one, is predicted to take on an A100. No device is
/// asked, so that the number is the same everywhere: for comparing requests that could stand for one another, such as
/// one layer in two layouts. What a device takes, tuning measures. Throws Error(unsupported) with the reasons if no
/// algorithm serves the request. Thread-safe.
double predicted_seconds(const Request& request);

/// The same, but `unserved` if no algorithm serves the request.
double predicted_seconds(const Request& request, double unserved);

}  // namespace kiln
