// Schedules of parts of one graph: the search for layouts asks for the costs of many.
#pragma once

#include <memory>
#include <vector>

#include "kiln/graph/graph.h"
#include "kiln/graph/schedule.h"

namespace kiln::graph {

/// Some nodes of a graph. With a View or a Concat it has all that views and concatenations connect with it, and with a
/// call the views and concatenations of its operands: memory of these values depends on nothing else.
struct Part {
  std::vector<size_t> nodes;            ///< Indices, ascending.
  std::vector<size_t> inputs, outputs;  ///< Numbers of the ports of its values, ascending.
};

/// All nodes and ports of a graph.
Part whole_of(const Graph& graph);

class Scheduler;

/// Makes schedules of parts. Both references are kept: `options` may change between schedules.
class PartialSchedules {
 public:
  PartialSchedules(const Graph& graph, const ScheduleOptions& options);
  ~PartialSchedules();
  PartialSchedules(const PartialSchedules&) = delete;
  PartialSchedules& operator=(const PartialSchedules&) = delete;

  /// The requests that `part` runs each time, as they are in schedule() of the whole; throws as that does. Takes time
  /// by the size of `part`.
  std::vector<Request> requests(const Part& part);

 private:
  std::unique_ptr<Scheduler> scheduler_;
};

}  // namespace kiln::graph
