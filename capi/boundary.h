// The boundary between C and C++: exceptions become a status and the thread's last error, arguments are checked.
#pragma once

#include <cxxabi.h>

#include <cstring>
#include <exception>
#include <string>
#include <string_view>

#include "kiln/base/error.h"
#include "kiln/base/no_cancellation.h"
#include "kiln/kiln.h"

namespace kiln::capi {

kiln_status status_of(ErrorCode code);

/// Keeps `error` as the last one of this thread and returns its status.
kiln_status report(const std::exception_ptr& error) noexcept;

/// Runs `body`; what it throws becomes a status. A thread that is cancelled meanwhile goes on until the call returns.
/// One that a callback ends (pthread_exit) unwinds through here: that is no exception, and to keep it ends the process.
template <class Body>
kiln_status guarded(const Body& body) {
  const NoCancellation whole;
  try {
    body();
    return KILN_OK;
  } catch (const abi::__forced_unwind&) {
    throw;
  } catch (...) {
    return report(std::current_exception());
  }
}

/// Destroys what a handle stands for.
template <class Handle>
void destroy(const Handle* handle) noexcept {
  const NoCancellation whole;
  delete handle;
}

/// Throws Error(invalid_argument) "<function>: <name> is NULL" if it is.
void require(const void* pointer, std::string_view function, std::string_view name);

/// The value of a flag. Throws Error(invalid_argument) unless it is 0 or 1.
bool flag(int32_t value, std::string_view function, std::string_view name);

/// Throws Error(invalid_argument) unless `value` is 0.
void require_zero(int32_t value, std::string_view function, std::string_view name);

/// Throws Error(invalid_argument) unless a structure of `size` bytes can be read as one of `known` bytes: not smaller
/// than in the first version, and zero where this library knows no field.
void check_size(const void* structure, uint32_t size, uint32_t first, uint32_t known, std::string_view function);

/// The structure that a caller gave, with `defaults` for the fields that its version does not have; all defaults for
/// NULL. `first`: bytes of the structure in the first version that had it.
template <class Structure>
Structure read(const Structure* given, const Structure& defaults, std::string_view function,
               uint32_t first = sizeof(Structure)) {
  if (given == nullptr) return defaults;
  check_size(given, given->size, first, sizeof(Structure), function);
  Structure result = defaults;
  std::memcpy(&result, given, given->size < sizeof(Structure) ? given->size : sizeof(Structure));
  return result;
}

/// Writes what the caller's version of the structure has of `value`; its size stays. Throws as check_size().
template <class Structure>
void write(Structure* given, const Structure& value, std::string_view function, uint32_t first = sizeof(Structure)) {
  require(given, function, "info");
  const uint32_t size = given->size;
  check_size(given, size, first, sizeof(Structure), function);
  std::memcpy(given, &value, size < sizeof(Structure) ? size : sizeof(Structure));
  given->size = size;
}

/// A copy of `text` that kiln_string_destroy() frees.
char* copy_of(const std::string& text);

}  // namespace kiln::capi
