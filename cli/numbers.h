// Lists and ranges of numbers in options: --shape, --sweep.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace kiln::cli {

/// More numbers or sizes are not taken from options.
inline constexpr size_t most_sizes = 4096;

/// The part of `text` before `separator`, which is taken off it; all of it where there is none.
std::string_view take_part(std::string_view& text, std::string_view separator);

/// "224"; "224..448": each number from 224 to 448; "224..448/32": in steps of 32; "14..224*2": each twice the one
/// before. Calls `refuse`, which throws, with what is wrong of other text, and of more than most_sizes numbers.
std::vector<int64_t> numbers_of(std::string_view text, const std::function<void(const std::string&)>& refuse);

}  // namespace kiln::cli
