// Limits on memory and time for reading one model. Few bytes of a file can ask for any amount of memory and time: all
// that is made of them is counted here first. Counts instead of seconds, so that a model is read or refused alike on
// every machine.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "kiln/graph/graph.h"

namespace kiln::onnx_frontend {

/// Why a node is not covered. The reason reads on from the node's name: "its indices are computed".
struct Refusal {
  std::string reason;
};

[[noreturn]] inline void refuse(std::string reason) {
  throw Refusal{std::move(reason)};
}

class Budget {
 public:
  /// Nodes that are read, in branches too. A model becomes no fewer calls and views than most of its nodes.
  static constexpr int64_t most_nodes = static_cast<int64_t>(graph::most_nodes);
  /// Elements of one table.
  static constexpr int64_t most_elements = int64_t{1} << 26;
  /// Bytes of all tables that stay and that no file holds.
  static constexpr int64_t most_bytes = int64_t{1} << 30;
  /// Elements that are looked at, a few nanoseconds each.
  static constexpr int64_t most_operations = int64_t{1} << 30;

  /// Before a node is read. Throws Error(unsupported) beyond most_nodes.
  void take_node();
  /// Before elements are computed, `each` operations for one. Throws Refusal where they are more than one table may
  /// have, and Error(unsupported) beyond most_operations.
  void take_elements(int64_t elements, int64_t each = 1);
  /// Before bytes are kept that no file holds. Throws Error(unsupported) beyond most_bytes.
  void take_bytes(int64_t bytes);

 private:
  int64_t nodes_ = 0, bytes_ = 0, operations_ = 0;
};

}  // namespace kiln::onnx_frontend
