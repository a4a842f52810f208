// RecentChoices: what requests were estimated to run best by, of the plans made lately.
#pragma once

#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "kiln/generator/catalogue.h"

namespace kiln {

/// Saves the search where a plan is made again that was given up. Thread-safe.
class RecentChoices {
 public:
  static constexpr size_t most = 16384;  ///< of more, the first ones are forgotten

  void add(const std::string& key, const Choice& choice) {
    const std::lock_guard lock(mutex_);
    const auto [at, is_new] = choices_.insert_or_assign(key, choice);
    if (!is_new) return;
    order_.push_back(key);
    if (order_.size() <= most) return;
    choices_.erase(order_.front());
    order_.pop_front();
  }

  std::optional<Choice> find(std::string_view key) const {
    const std::lock_guard lock(mutex_);
    const auto found = choices_.find(key);
    return found == choices_.end() ? std::nullopt : std::optional(found->second);
  }

 private:
  mutable std::mutex mutex_;  // guards what follows
  std::map<std::string, Choice, std::less<>> choices_;
  std::deque<std::string> order_;
};

}  // namespace kiln
