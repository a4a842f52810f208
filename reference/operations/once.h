// Parts of results that are worked out once, by whichever thread asks first.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>

namespace kiln::reference {

/// Parts of results, as many as `count`, that are worked out once each, when an element of one is asked for.
template <class Part>
class Once {
 public:
  explicit Once(int64_t count) : entries_(static_cast<size_t>(count)) {}

  template <class WorkOut>
  const Part& of(int64_t number, const WorkOut& work_out) const {
    Entry& entry = entries_[static_cast<size_t>(number)];
    std::call_once(entry.once, [&] { entry.part = work_out(); });
    return entry.part;
  }

 private:
  struct Entry {
    std::once_flag once;
    Part part;
  };

  mutable std::deque<Entry> entries_;
};

}  // namespace kiln::reference
