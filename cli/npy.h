// Arrays in files of NumPy's format (.npy).
#pragma once

#include <string>

#include "kiln/models/host_run.h"

namespace kiln::cli {

/// Reads an array of numbers in either memory order. Throws Error(io_error) if the file cannot be read,
/// Error(parse_error) if it is no .npy file or cut short, Error(unsupported) for elements that no model has.
models::HostArray read_npy(const std::string& path);

/// Writes an array; types that NumPy does not have (bfloat16) become float. Replaces the file when it is complete.
/// Throws Error(io_error).
void write_npy(const std::string& path, const models::HostArray& array);

}  // namespace kiln::cli
