#include "boundary.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <new>
#include <string>

#include "kiln/base/error.h"
#include "kiln/version.h"

namespace kiln::capi {
namespace {

/// No structure of any version is larger; a size beyond it was never set.
constexpr uint32_t largest_structure = 4096;

kiln_status keep(kiln_status status, const char* message, const char* hint) noexcept {
  kiln_set_last_error(message, hint);
  return status;
}

}  // namespace

kiln_status status_of(ErrorCode code) {
  switch (code) {
    case ErrorCode::invalid_argument:
      return KILN_INVALID_ARGUMENT;
    case ErrorCode::parse_error:
      return KILN_PARSE_ERROR;
    case ErrorCode::unsupported:
      return KILN_UNSUPPORTED;
    case ErrorCode::compile_failed:
      return KILN_COMPILE_FAILED;
    case ErrorCode::driver_error:
      return KILN_DRIVER_ERROR;
    case ErrorCode::missing_library:
      return KILN_MISSING_LIBRARY;
    case ErrorCode::out_of_memory:
      return KILN_OUT_OF_MEMORY;
    case ErrorCode::io_error:
      return KILN_IO_ERROR;
    case ErrorCode::internal:
      return KILN_INTERNAL;
    case ErrorCode::not_finite:
      return KILN_NOT_FINITE;
  }
  return KILN_INTERNAL;
}

kiln_status report(const std::exception_ptr& error) noexcept {
  try {
    std::rethrow_exception(error);
  } catch (const Error& known) {
    return keep(status_of(known.code()), known.message().c_str(), known.hint().c_str());
  } catch (const std::bad_alloc&) {
    return keep(KILN_OUT_OF_MEMORY, "host memory ran out", "");
  } catch (const std::exception& other) {
    return keep(KILN_INTERNAL, other.what(), "please report it");
  } catch (...) {
    return keep(KILN_INTERNAL, "an exception of an unknown type", "please report it");
  }
}

void require(const void* pointer, std::string_view function, std::string_view name) {
  if (pointer == nullptr) throw Error(ErrorCode::invalid_argument, fmt::format("{}: {} is NULL", function, name));
}

bool flag(int32_t value, std::string_view function, std::string_view name) {
  if (value == 0 || value == 1) return value == 1;
  throw Error(ErrorCode::invalid_argument, fmt::format("{}: {} is {}, expected 0 or 1", function, name, value),
              "start from the structure's _default() function");
}

void require_zero(int32_t value, std::string_view function, std::string_view name) {
  if (value == 0) return;
  throw Error(ErrorCode::invalid_argument, fmt::format("{}: {} is {}, expected 0", function, name, value),
              "start from the structure's _default() function");
}

void check_size(const void* structure, uint32_t size, uint32_t first, uint32_t known, std::string_view function) {
  if (size < first || size > largest_structure) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("{}: the structure's size is {}, expected {}", function, size, known),
                "start from the structure's _default() function");
  }
  const auto* bytes = static_cast<const unsigned char*>(structure);
  if (size <= known || std::all_of(bytes + known, bytes + size, [](unsigned char byte) { return byte == 0; })) return;
  throw Error(ErrorCode::invalid_argument,
              fmt::format("{}: the structure sets a field that this library does not have", function),
              fmt::format("the library is Kiln {}; the program was compiled for a later one", version()));
}

char* copy_of(const std::string& text) {
  auto* copy = static_cast<char*>(std::malloc(text.size() + 1));
  if (copy == nullptr) throw std::bad_alloc();
  std::memcpy(copy, text.c_str(), text.size() + 1);
  return copy;
}

}  // namespace kiln::capi
