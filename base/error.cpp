#include "kiln/base/error.h"

#include <utility>

#include "kiln/base/printable.h"

namespace kiln {

std::string_view to_string(ErrorCode code) {
  switch (code) {
    case ErrorCode::invalid_argument:
      return "invalid argument";
    case ErrorCode::parse_error:
      return "parse error";
    case ErrorCode::unsupported:
      return "unsupported";
    case ErrorCode::compile_failed:
      return "compile failed";
    case ErrorCode::driver_error:
      return "driver error";
    case ErrorCode::missing_library:
      return "missing library";
    case ErrorCode::out_of_memory:
      return "out of memory";
    case ErrorCode::io_error:
      return "input/output error";
    case ErrorCode::internal:
      return "internal error";
    case ErrorCode::not_finite:
      return "not finite";
  }
  return "unknown error";
}

// Messages quote what was wrong, and it may have been made to be quoted: whoever prints them prints text.
Error::Error(ErrorCode code, std::string message, std::string hint)
    : std::runtime_error(printable(hint.empty() ? message : message + " (" + hint + ")")),
      code_(code),
      message_(std::move(message)),
      hint_(std::move(hint)) {
  message_ = printable(message_);
  hint_ = printable(hint_);
}

Error::~Error() = default;

}  // namespace kiln
