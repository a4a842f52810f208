// The edge of the library: whatever was thrown inside leaves as kiln::Error.
#pragma once

#include <exception>
#include <filesystem>
#include <new>
#include <stdexcept>
#include <string>

#include "kiln/base/error.h"

namespace kiln {

/// Throws again what a `catch (...)` caught: an Error as it is, any other exception of the standard library as an Error
/// "<about>: ...". `about`: the file or call that it was thrown from.
[[noreturn]] inline void throw_as_error(const std::string& about) {
  try {
    throw;
  } catch (const Error&) {
    throw;
  } catch (const std::bad_alloc&) {
    throw Error(ErrorCode::out_of_memory, about + ": this machine has not the memory that it takes");
  } catch (const std::length_error&) {
    throw Error(ErrorCode::out_of_memory, about + ": it takes more memory than a machine can have");
  } catch (const std::filesystem::filesystem_error& error) {
    throw Error(ErrorCode::io_error, about + ": " + error.what());
  } catch (const std::exception& error) {
    throw Error(ErrorCode::internal, about + ": " + error.what());
  }
}

}  // namespace kiln
