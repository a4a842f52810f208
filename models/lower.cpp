#include "kiln/models/lower.h"

#include <fmt/format.h>

#include <limits>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "kiln/base/as_error.h"
#include "kiln/base/error.h"
#include "kiln/base/parallel.h"
#include "kiln/base/printable.h"
#include "kiln/graph/layouts.h"
#include "kiln/graph/optimise.h"
#include "kiln/prediction.h"

namespace kiln::models {
namespace {

constexpr double unserved = std::numeric_limits<double>::infinity();

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

/// The calls that run once, when a model is loaded, keep what they compute: few bytes of a file can ask for any amount.
/// Values made of weights in files, as their transposition or their conversion from 8 bits, may be as large as they.
void check_kept(const graph::Schedule& schedule, int64_t stored_bytes) {
  constexpr int64_t most = int64_t{1} << 30, times = 16;
  const int64_t permitted = most + times * stored_bytes;
  std::vector<bool> seen(schedule.buffers.size(), false);
  int64_t bytes = 0;
  for (const graph::Step& step : schedule.once) {
    for (const graph::Argument& argument : step.arguments) {
      const graph::Buffer& buffer = schedule.buffers[argument.buffer];
      if (buffer.home != graph::Buffer::Home::kept || seen[argument.buffer]) continue;
      seen[argument.buffer] = true;
      bytes += buffer.bytes;
    }
    if (bytes <= permitted) continue;
    const std::string node = step.origins.empty() ? "" : fmt::format(" for node '{}'", printable_name(step.origins[0]));
    throw Error(ErrorCode::unsupported,
                fmt::format("values computed from constants{}, and before it, take {} bytes when the model is loaded, "
                            "and up to {} are covered",
                            node, bytes, permitted),
                "compute it outside of the model, or split the model");
  }
}

}  // namespace

graph::Cost estimated_cost() {
  auto known = std::make_shared<std::map<std::string, double>>();
  // A server of many sizes asks for ever more requests.
  const auto make_room = [known] {
    constexpr size_t most = size_t{1} << 15;
    if (known->size() >= most) known->clear();
  };
  const auto of_one = [known, make_room](const Request& request) {
    make_room();
    const auto [place, is_new] = known->try_emplace(request.key(), unserved);
    if (is_new) place->second = predicted_seconds(request, unserved);
    return place->second;
  };
  const auto learn = [known, make_room](std::span<const Request> requests) {
    make_room();
    std::map<std::string, const Request*> unknown;
    for (const Request& request : requests) {
      std::string key = request.key();
      if (!known->contains(key)) unknown.try_emplace(std::move(key), &request);
    }
    if (unknown.size() < 2) return;
    const std::vector<std::pair<std::string, const Request*>> list(unknown.begin(), unknown.end());
    std::vector<double> seconds(list.size());
    for_each_index(list.size(), [&](size_t i) { seconds[i] = predicted_seconds(*list[i].second, unserved); });
    for (size_t i = 0; i < list.size(); ++i) known->emplace(list[i].first, seconds[i]);
  };
  return {of_one, learn};
}

Lowered lower(const OnnxFile& file, const ModelOptions& options, const graph::Cost& cost) {
  const std::string& path = file.path();
  Lowered lowered;
  lowered.model = file.read({options.dtype, options.batch, options.shapes});
  try {
    if (options.fuse) graph::optimise(lowered.model.graph, cost);
    graph::ScheduleOptions how{.dynamic_batch = options.dynamic_batch, .arithmetic = options.arithmetic};
    how.channels_last = channels_last(lowered.model.graph, how, options.layout, cost);
    how.batch_invariant = options.batch_invariant;  // layouts are chosen without: it makes estimates dear
    lowered.schedule = graph::schedule(lowered.model.graph, how);
    check_kept(lowered.schedule, lowered.model.stored_bytes);
  } catch (const Error& error) {
    throw Error(error.code(), fmt::format("{}: {}", path, error.message()), error.hint());
  } catch (...) {
    throw_as_error(path);
  }
  return lowered;
}

Lowered lower(const std::string& path, const ModelOptions& options, const graph::Cost& cost) {
  return lower(OnnxFile(path), options, cost);
}

}  // namespace kiln::models
