#include <algorithm>
#include <cstdint>
#include <unordered_map>
#include <utility>
#include <vector>

#include "compressed_text.h"

namespace kiln {
namespace {

constexpr size_t most_candidates = 64;  // more find hardly anything longer

struct Match {
  size_t length = 0;
  size_t distance = 0;
};

class Compressor {
 public:
  explicit Compressor(std::string_view text) : text_(text) {}

  std::string run() {
    size_t position = 0;
    Match match = longest_at(position);
    while (position < text_.size()) {
      remember(position);
      // A longer match that begins one byte later is worth a literal.
      const Match next = longest_at(position + 1);
      if (match.length < shortest_match || next.length > match.length) {
        match = next;
        ++position;
        continue;
      }
      add_step(position, match);
      const size_t end = position + match.length;
      while (++position < end) remember(position);
      match = longest_at(position);
    }
    add_step(text_.size(), {});
    return std::move(result_);
  }

 private:
  std::string_view text_;
  std::unordered_map<std::string_view, std::vector<size_t>> places_;  // of every shortest match so far
  size_t literals_ = 0;                                               // where those of the next step begin
  std::string result_;

  void remember(size_t position) {
    if (position + shortest_match <= text_.size()) {
      places_[text_.substr(position, shortest_match)].push_back(position);
    }
  }

  Match longest_at(size_t position) const {
    Match longest;
    if (position + shortest_match > text_.size()) return longest;
    const auto found = places_.find(text_.substr(position, shortest_match));
    if (found == places_.end()) return longest;
    const std::string_view here = text_.substr(position);
    size_t left = most_candidates;
    for (auto place = found->second.rbegin(); place != found->second.rend() && left > 0; ++place, --left) {
      if (position - *place > farthest_match) break;
      const auto differing =
          std::mismatch(here.begin(), here.end(), text_.begin() + static_cast<std::ptrdiff_t>(*place));
      const auto length = static_cast<size_t>(differing.first - here.begin());
      if (length > longest.length) longest = {length, position - *place};
    }
    return longest;
  }

  void add_byte(size_t value) { result_.push_back(static_cast<char>(static_cast<uint8_t>(value))); }

  void add_rest(size_t value) {
    if (value < 15) return;
    for (value -= 15; value >= 255; value -= 255) add_byte(255);
    add_byte(value);
  }

  // The literals up to `position`, and the match there; without a length it is the last step.
  void add_step(size_t position, const Match& match) {
    const size_t literals = position - literals_, length = match.length == 0 ? 0 : match.length - shortest_match;
    add_byte(std::min<size_t>(literals, 15) << 4 | std::min<size_t>(length, 15));
    add_rest(literals);
    result_ += text_.substr(literals_, literals);
    if (match.length == 0) return;
    add_byte(match.distance & 255);
    add_byte(match.distance >> 8);
    add_rest(length);
    literals_ = position + match.length;
  }
};

}  // namespace

std::string compressed(std::string_view text) {
  return Compressor(text).run();
}

}  // namespace kiln
