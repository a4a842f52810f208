#include "numbers.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>

#include "kiln/base/error.h"

namespace kiln::cli {
namespace {

std::optional<int64_t> number_of(std::string_view text) {
  int64_t value = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool is_number = error == std::errc() && stop == text.data() + text.size() && value >= 0;
  return is_number ? std::optional(value) : std::nullopt;
}

// How a range goes on from a number.
struct Stride {
  int64_t factor = 1, step = 1;

  // Nothing beyond `last`.
  std::optional<int64_t> after(int64_t number, int64_t last) const {
    if (number > (last - step) / factor) return std::nullopt;
    return number * factor + step;
  }
};

// Stride of the text behind a range, with its sign: "/32", "*2", or nothing. No stride for other text.
std::optional<Stride> stride_of(std::string_view text, int64_t first) {
  if (text.empty()) return Stride{};
  const std::optional<int64_t> number = number_of(text.substr(1));
  if (!number) return std::nullopt;
  if (text.front() == '/') return *number >= 1 ? std::optional(Stride{1, *number}) : std::nullopt;
  return *number >= 2 && first >= 1 ? std::optional(Stride{*number, 0}) : std::nullopt;
}

}  // namespace

std::string_view take_part(std::string_view& text, std::string_view separator) {
  const size_t end = std::min(text.find(separator), text.size());
  const std::string_view part = text.substr(0, end);
  text.remove_prefix(std::min(end + separator.size(), text.size()));
  return part;
}

std::vector<int64_t> numbers_of(std::string_view text, const std::function<void(const std::string&)>& refuse) {
  const size_t sign = std::min(text.find_first_of("/*"), text.size());
  std::string_view rest = text.substr(0, sign);
  const bool is_range = rest.find("..") != std::string_view::npos;
  const std::optional<int64_t> first = number_of(take_part(rest, ".."));
  const std::optional<int64_t> last = is_range ? number_of(rest) : first;
  const std::optional<Stride> stride = first ? stride_of(text.substr(sign), *first) : std::nullopt;
  const bool is_stride_of_nothing = !is_range && sign < text.size();
  if (!first || !last || !stride || *last < *first || is_stride_of_nothing) {
    refuse(fmt::format("'{}' is no extent", text));
    throw Error(ErrorCode::internal, "what refuses an extent returned");
  }
  std::vector<int64_t> numbers;
  for (std::optional<int64_t> next = first; next; next = stride->after(*next, *last)) {
    if (numbers.size() == most_sizes) refuse(fmt::format("'{}' has more than {} numbers", text, most_sizes));
    numbers.push_back(*next);
  }
  return numbers;
}

}  // namespace kiln::cli
