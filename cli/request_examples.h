// The requests that the program can show, embedded.
#pragma once

#include <string_view>

namespace kiln::cli {

/// examples/requests/one_of_each.txt: a request of each operation.
extern const std::string_view one_of_each;

}  // namespace kiln::cli
