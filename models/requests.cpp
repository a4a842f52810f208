#include "kiln/models/requests.h"

#include <fmt/format.h>

#include <limits>
#include <map>
#include <memory>
#include <utility>

#include "kiln/base/as_error.h"
#include "kiln/base/error.h"
#include "kiln/graph/layouts.h"
#include "kiln/graph/passes.h"
#include "kiln/prediction.h"

namespace kiln::models {
namespace {

std::vector<bool> channels_last(const graph::Graph& graph, const graph::ScheduleOptions& options, ModelLayout layout,
                                const graph::Cost& cost) {
  switch (layout) {
    case ModelLayout::channels_first:
      return {};
    case ModelLayout::channels_last:
      return graph::all_channels_last(graph);
    case ModelLayout::automatic:
      break;
  }
  return graph::choose_layouts(graph, options, cost);
}

}  // namespace

graph::Cost estimated_cost() {
  auto known = std::make_shared<std::map<std::string, double>>();
  return [known](const Request& request) {
    constexpr double unserved = std::numeric_limits<double>::infinity();
    const auto [place, is_new] = known->try_emplace(request.key(), unserved);
    if (is_new) place->second = predicted_seconds(request, unserved);
    return place->second;
  };
}

Lowered lower(const std::string& path, const ModelOptions& options, const graph::Cost& cost) {
  Lowered lowered;
  lowered.model = read_onnx(path, {options.dtype, options.batch});
  try {
    if (options.fuse) graph::optimise(lowered.model.graph, cost);
    graph::ScheduleOptions how{.dynamic_batch = options.dynamic_batch, .arithmetic = options.arithmetic};
    how.channels_last = channels_last(lowered.model.graph, how, options.layout, cost);
    lowered.schedule = graph::schedule(lowered.model.graph, how);
  } catch (const Error& error) {
    throw Error(error.code(), fmt::format("{}: {}", path, error.message()), error.hint());
  } catch (...) {
    throw_as_error(path);
  }
  return lowered;
}

}  // namespace kiln::models
