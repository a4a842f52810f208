#include "onnx/budget.h"

#include <fmt/format.h>

#include "kiln/base/error.h"

namespace kiln::onnx_frontend {
namespace {

[[noreturn]] void exhausted(const std::string& what) {
  throw Error(ErrorCode::unsupported, what, "compute it outside of the model, or split the model");
}

}  // namespace

void Budget::take_node() {
  if (++nodes_ > most_nodes) exhausted(fmt::format("the model has more than {} nodes", most_nodes));
}

void Budget::take_elements(int64_t elements, int64_t each) {
  if (elements > most_elements) {
    refuse(fmt::format("it makes a table of {} elements while the model is read, and up to {} are covered", elements,
                       most_elements));
  }
  operations_ += elements * each;
  if (operations_ > most_operations) {
    exhausted(fmt::format("computing constants of the model takes more than {} operations", most_operations));
  }
}

void Budget::take_bytes(int64_t bytes) {
  bytes_ += bytes;
  if (bytes_ > most_bytes) {
    exhausted(fmt::format("constants that are made while the model is read take more than {} bytes", most_bytes));
  }
}

}  // namespace kiln::onnx_frontend
