// Independent work on all of the machine's threads.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <exception>
#include <thread>
#include <vector>

#include "kiln/base/no_cancellation.h"

namespace kiln {

/// Calls work(i) for every i below `count`, on as many threads as the machine has, this one included. Does all of it,
/// then throws what the first of them, in the order of i, has thrown.
template <class Work>
void for_each_index(size_t count, const Work& work) {
  const NoCancellation whole;  // a cancelled thread would leave its part undone, and the others waited for
  std::vector<std::exception_ptr> failures(count);
  std::atomic<size_t> next{0};
  const auto run = [&] {
    for (size_t i = next++; i < count; i = next++) {
      try {
        work(i);
      } catch (...) {
        failures[i] = std::current_exception();
      }
    }
  };
  {
    std::vector<std::jthread> threads;
    const size_t lanes = std::min<size_t>(count, std::max(1U, std::thread::hardware_concurrency()));
    for (size_t i = 1; i < lanes; ++i) threads.emplace_back(run);
    run();
  }
  for (const std::exception_ptr& failure : failures) {
    if (failure) std::rethrow_exception(failure);
  }
}

/// Calls work(begin, end) for parts of [0, count) that cover it, none of fewer than `least` (1 or more) but the last,
/// on threads as above.
template <class Work>
void for_each_part(size_t count, size_t least, const Work& work) {
  constexpr size_t most_parts = 64;
  const size_t size = std::max(least, (count + most_parts - 1) / most_parts);
  for_each_index((count + size - 1) / size,
                 [&](size_t part) { work(part * size, std::min(count, (part + 1) * size)); });
}

}  // namespace kiln
