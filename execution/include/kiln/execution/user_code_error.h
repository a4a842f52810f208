// NVRTC's complaints about user code, in the user's terms.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "kiln/base/error.h"

namespace kiln::execution {

/// The user's code does not compile (compile_failed). The message names each error's line and column of the user's text
/// and shows the line with a caret. No variant of the request will compile.
class UserCodeError : public Error {
 public:
  explicit UserCodeError(std::string message);
};

/// Errors in user code that `log`, NVRTC's log of a failed compile, reports; nothing if it has none.
std::optional<std::string> user_code_errors(std::string_view log);

}  // namespace kiln::execution
