#include "variant.h"

#include <charconv>

#include "kiln/base/error.h"

namespace kiln::tuner {

// The length of the first program's bytes, a line break, and the programs.
std::string serialise(const Variant& variant) {
  const std::string program = execution::serialise(variant.program);
  std::string bytes = std::to_string(program.size()) + '\n' + program;
  if (variant.stand_in) bytes += execution::serialise(*variant.stand_in);
  return bytes;
}

Variant variant_from(std::string_view bytes) {
  size_t length = 0;
  const auto [end, error] = std::from_chars(bytes.data(), bytes.data() + bytes.size(), length);
  const size_t digits = static_cast<size_t>(end - bytes.data());
  if (error != std::errc() || digits == bytes.size() || bytes.size() - digits - 1 < length) {
    throw Error(ErrorCode::parse_error, "a variant without the length of its program");
  }
  bytes.remove_prefix(digits + 1);
  Variant variant{execution::deserialise(bytes.substr(0, length)), std::nullopt};
  if (bytes.size() > length) variant.stand_in = execution::deserialise(bytes.substr(length));
  return variant;
}

}  // namespace kiln::tuner
