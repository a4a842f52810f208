// The chain of calls that attention is before it becomes one call.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <vector>

#include "edges.h"
#include "kiln/generator/operations/attention.h"
#include "kiln/graph/graph.h"

namespace kiln::graph {

/// An operand that repeats to the scores, which have the extents `whole` where it meets them.
struct ScoreOperand {
  ValueId value = 0;
  Extents whole;
};

/// Flags that say which scores become `fill`.
struct ScoreMask {
  ScoreOperand flags;
  bool hides = false;  ///< Scores whose flag is not 0 do; else those whose flag is 0.
  float fill = 0;
};

/// softmax(scale q kt + bias) v: its nodes, and the values that they read.
struct AttentionMatch {
  std::set<size_t> indices;
  ValueId q = 0, kt = 0, v = 0, result = 0;
  double scale = 1;
  std::vector<ScoreOperand> biases;      ///< Up to two, which are added up.
  std::optional<ScoreMask> mask;         ///< A finite fill comes without biases and places.
  std::optional<AttentionAlign> causal;  ///< The places of queries that see no key behind them.
  Extents scores;                        ///< Images, heads, queries and keys.
};

/// The chain whose softmax is the node at `index`; nothing if it is none. `elements_left`: how many elements of
/// constants may still be looked at.
std::optional<AttentionMatch> attention_at(const Graph& graph, const Edges& edges, size_t index,
                                           int64_t& elements_left);

}  // namespace kiln::graph
