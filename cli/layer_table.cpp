#include "layer_table.h"

#include <utility>

#include "kiln/base/printable.h"
#include "short_forms.h"

namespace kiln::cli {
namespace {

std::vector<std::string> headings(const ModelNodes& nodes, const std::vector<std::string>& found) {
  std::vector<std::string> all = {"layer", ">count"};
  all.insert(all.end(), found.begin(), found.end());
  if (!nodes.empty()) all.push_back(nodes_heading(shared_scope(nodes.names())));
  return all;
}

}  // namespace

std::string nodes_heading(const std::string& scope) {
  return scope.empty() ? "nodes" : "nodes of " + printable_line(scope);
}

LayerTable::LayerTable(const ModelNodes& nodes, const std::vector<std::string>& found)
    : nodes_(&nodes), scope_(shared_scope(nodes.names())), table_(headings(nodes, found)) {}

void LayerTable::add(const Request& request, int64_t count, const std::vector<std::string>& found) {
  std::vector<std::string> row = {summary(request), std::to_string(count)};
  row.insert(row.end(), found.begin(), found.end());
  if (!nodes_->empty()) row.push_back(nodes_->text(request, scope_));
  table_.add(std::move(row));
}

}  // namespace kiln::cli
