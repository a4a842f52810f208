// Requests of all operations, for every test that asks something of each. A new operation adds its lines to these files
// and to no test.
#pragma once

#include <vector>

#include "kiln/generator/request.h"

namespace kiln::testing_support {

/// One small request of each operation: examples/requests/one_of_each.txt.
const std::vector<Request>& one_of_each();

/// Awkward shapes, strides, dtypes and batches, and every attribute: awkward.txt.
const std::vector<Request>& awkward_requests();

/// Together they have every operand and reach every algorithm; packed, aligned and small: every_operand.txt.
const std::vector<Request>& requests_with_every_operand();

/// All of these, which a device can hold.
const std::vector<Request>& all_requests();

/// With an operand, or strides, beyond 2^31 elements; every algorithm serves one: beyond_32_bits.txt.
const std::vector<Request>& requests_beyond_32_bits();

}  // namespace kiln::testing_support
