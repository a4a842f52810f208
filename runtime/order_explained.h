// Cost of one order of sums in all batches.
#pragma once

#include <optional>

#include "kiln/context.h"
#include "selection.h"

namespace kiln {

/// `selector`: that of a request; `candidates`: its candidates, best first. Nothing unless the request has
/// `batch_invariant` and can be served in an order of sums. Both times are of one kind: of stored choices with equal
/// sources, else estimates.
std::optional<ExplainedOrder> explained_order(const Selector& selector, const Candidates& candidates);

}  // namespace kiln
