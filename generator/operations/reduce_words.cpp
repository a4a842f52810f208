#include "operations/reduce_words.h"

#include "kiln/base/error.h"

namespace kiln {

ReduceMode reduce_mode_of(const Request& request) {
  for (const ReduceMode mode : reduce_modes()) {
    if (to_string(mode) == request.word("mode")) return mode;
  }
  throw Error(ErrorCode::internal, "a reduction without a mode");
}

std::vector<std::string> reduce_mode_words() {
  std::vector<std::string> all;
  for (const ReduceMode mode : reduce_modes()) all.emplace_back(to_string(mode));
  return all;
}

}  // namespace kiln
