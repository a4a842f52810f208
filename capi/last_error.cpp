// Values that kiln_last_error() and its like return: the state of each thread, which a process has once.
#include <new>
#include <string>

#include "boundary.h"
#include "c_names.h"
#include "kiln/base/error.h"
#include "kiln/version.h"

namespace kiln::capi {
namespace {

struct LastError {
  std::string message, hint;
};

// Each thread has its own state, as kiln_last_error() promises.
LastError& last_error() noexcept {
  thread_local LastError error;
  return error;
}

}  // namespace
}  // namespace kiln::capi

void kiln_set_last_error(const char* message, const char* hint) {
  kiln::capi::LastError& error = kiln::capi::last_error();
  try {
    error.message = kiln::capi::in_words_of_c(message == nullptr ? "" : message);
    error.hint = kiln::capi::in_words_of_c(hint == nullptr ? "" : hint);
  } catch (const std::bad_alloc&) {  // no room for the text: the status has to do
    error.message.clear();
    error.hint.clear();
  }
}

const char* kiln_status_name(kiln_status status) {
  if (status == KILN_OK) return "ok";
  for (int code = 0; code <= static_cast<int>(kiln::last_error_code); ++code) {
    const auto error = static_cast<kiln::ErrorCode>(code);
    if (kiln::capi::status_of(error) == status)
      return kiln::to_string(error).data();  // literals, so they end with zero
  }
  return "unknown status";
}

const char* kiln_last_error(void) {
  return kiln::capi::last_error().message.c_str();
}
const char* kiln_last_hint(void) {
  return kiln::capi::last_error().hint.c_str();
}
const char* kiln_version(void) {
  return kiln::version().data();  // a literal
}
