// Numbers out of JSON from outside.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <utility>

namespace kiln::execution {

/// The integer in `value`. JSON's own get<T>() converts whatever number there is; here, one that T cannot hold throws
/// json::out_of_range.
template <class T>
T integer(const nlohmann::json& value) {
  const bool fits = value.is_number_unsigned()  ? std::in_range<T>(value.get<uint64_t>())
                    : value.is_number_integer() ? std::in_range<T>(value.get<int64_t>())
                                                : false;
  if (!fits) throw nlohmann::json::out_of_range::create(406, "a number is not what it should be", &value);
  return value.get<T>();
}

}  // namespace kiln::execution
