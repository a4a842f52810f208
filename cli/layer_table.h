// The table of a workload's layers that commands print.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "input.h"
#include "table.h"

namespace kiln::cli {

/// A row for each layer: what it is, how often it occurs, what the command found, and for a model the names of its
/// nodes. These come last, because they are the longest. The scope that all names share stands in the heading alone.
class LayerTable {
 public:
  /// `found`: the headings of what the command found, as of a Table. `nodes` must outlive this.
  LayerTable(const ModelNodes& nodes, const std::vector<std::string>& found);

  void add(const Request& request, int64_t count, const std::vector<std::string>& found);
  const Table& table() const { return table_; }

 private:
  const ModelNodes* nodes_;
  std::string scope_;
  Table table_;
};

/// The heading of a column of names that shared_scope() was taken from.
std::string nodes_heading(const std::string& scope);

}  // namespace kiln::cli
