// Layouts: the order of dimensions in which the values of a graph lie in memory.
#pragma once

#include <cstddef>
#include <vector>

#include "kiln/graph/cost.h"
#include "kiln/graph/graph.h"
#include "kiln/graph/schedule.h"

namespace kiln::graph {

/// All values that convolutions read and write, and what is computed of these element by element, channels last: for
/// ScheduleOptions::channels_last.
std::vector<bool> all_channels_last(const Graph& graph);

/// Which of those values are to lie channels last, so that the steps of schedule() with `options`, the copies between
/// layouts included, cost least by `cost`.
///
/// Values are chosen by regions: all but convolutions read and write in one layout; a convolution may read one and
/// write another. Filters lie as what they are applied to: a constant is uploaded in either order. From the cheaper of
/// nothing and everything channels last, regions change sides one by one while that makes the whole cheaper. A region
/// is tried in schedules of the nodes around it, and again when its neighbours have changed: the search takes time by
/// the number of nodes, unless many regions reach through the whole model. `cost` is asked for every step of each
/// schedule that is tried. A search whose schedules have had `most_steps` nodes and steps, some 10 s, keeps what is
/// best so far.
std::vector<bool> choose_layouts(const Graph& graph, const ScheduleOptions& options, const Cost& cost,
                                 size_t most_steps = size_t{1} << 21);

}  // namespace kiln::graph
