// Times of day as ISO 8601 text, in UTC and milliseconds.
#include <fmt/format.h>

#include <charconv>
#include <chrono>

#include "kiln/cache/record.h"

namespace kiln::cache {
namespace {

using Days = std::chrono::sys_days;
using Milliseconds = std::chrono::sys_time<std::chrono::milliseconds>;

std::optional<int> digits(std::string_view text) {
  int value = 0;
  for (const char c : text) {
    if (c < '0' || c > '9') return std::nullopt;
    value = value * 10 + (c - '0');
  }
  return value;
}

}  // namespace

std::string format_utc(std::int64_t ms) {
  const Milliseconds time{std::chrono::milliseconds(ms)};
  const Days day = std::chrono::floor<std::chrono::days>(time);
  const std::chrono::year_month_day date(day);
  const std::chrono::hh_mm_ss clock(time - day);
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:03}Z", static_cast<int>(date.year()),
                     static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()), clock.hours().count(),
                     clock.minutes().count(), clock.seconds().count(), clock.subseconds().count());
}

std::optional<std::int64_t> parse_utc(std::string_view text) {
  constexpr std::string_view shape = "0000-00-00T00:00:00.000Z";
  if (text.size() != shape.size()) return std::nullopt;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] != '0' && text[i] != shape[i]) return std::nullopt;
  }
  const auto field = [&](std::size_t at, std::size_t length) { return digits(text.substr(at, length)); };
  const auto year = field(0, 4), month = field(5, 2), day = field(8, 2);
  const auto hour = field(11, 2), minute = field(14, 2), second = field(17, 2), fraction = field(20, 3);
  if (!year || !month || !day || !hour || !minute || !second || !fraction) return std::nullopt;
  const std::chrono::year_month_day date{std::chrono::year(*year), std::chrono::month(static_cast<unsigned>(*month)),
                                         std::chrono::day(static_cast<unsigned>(*day))};
  if (!date.ok() || *hour > 23 || *minute > 59 || *second > 59) return std::nullopt;
  const Milliseconds time = Days(date) + std::chrono::hours(*hour) + std::chrono::minutes(*minute) +
                            std::chrono::seconds(*second) + std::chrono::milliseconds(*fraction);
  return time.time_since_epoch().count();
}

std::int64_t utc_now_ms() {
  return std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::system_clock::now().time_since_epoch())
      .count();
}

}  // namespace kiln::cache
