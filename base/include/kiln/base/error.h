// kiln::Error: the one exception type that leaves Kiln.
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>

namespace kiln {

/// Kind of fault that an Error reports. Callers branch on it; the C API returns it as a status.
enum class ErrorCode {
  invalid_argument,  ///< A request, tensor, pointer, flag or setting is wrong. Nothing was enqueued.
  parse_error,       ///< Text (request line, model, pack) is malformed; the message holds the position.
  unsupported,       ///< Well formed, but nothing here can serve it. The message says what was missing.
  compile_failed,    ///< NVRTC rejected a source; the message carries its log.
  driver_error,      ///< A driver call failed; the message names the call, the object and the driver's text.
  missing_library,   ///< libcuda, NVRTC or the emulator could not be loaded.
  out_of_memory,     ///< Host or device memory ran out.
  io_error,          ///< A file could not be read or written.
  internal,          ///< A broken invariant in Kiln itself; please report it.
  not_finite,        ///< KILN_CHECK_NUMERICS=error found NaN or infinity in an operand or a result.
};

inline constexpr ErrorCode last_error_code = ErrorCode::not_finite;

/// Stable spelling of `code` for logs and the command line, e.g. "invalid argument".
std::string_view to_string(ErrorCode code);

#pragma GCC visibility push(default)  // one type in all libraries that throw and catch it, whatever they hide
/// A fault: what went wrong, and what to do about it.
///
/// what() is "<message>" or "<message> (<hint>)". Expected outcomes (a variant refused, a check failed) are values,
/// never Errors.
class Error : public std::runtime_error {
 public:
  Error(ErrorCode code, std::string message, std::string hint = {});
  ~Error() override;  // not inline, so that its type stands in one place

  ErrorCode code() const { return code_; }
  /// The fault, and what was expected.
  const std::string& message() const { return message_; }
  /// Advice to the user; may be empty.
  const std::string& hint() const { return hint_; }

 private:
  ErrorCode code_;
  std::string message_;
  std::string hint_;
};
#pragma GCC visibility pop

}  // namespace kiln
