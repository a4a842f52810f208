// ExactPlans: the thread that makes plans of shapes which an open kernel serves meanwhile.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <set>
#include <string>
#include <thread>

#include "kiln/generator/request.h"

namespace kiln {

/// Thread-safe. The thread begins with the first request.
class ExactPlans {
 public:
  /// Requests that wait, at most: of further ones those go that have waited longest, and stay with open kernels.
  static constexpr size_t most_waiting = 1024;

  /// `make` is called for one request after the other, the latest first; must not throw.
  explicit ExactPlans(std::function<void(const KeyedRequest&)> make) : make_(std::move(make)) {}
  /// Waits for the plan that is being made, and for no other.
  ~ExactPlans();
  ExactPlans(const ExactPlans&) = delete;
  ExactPlans& operator=(const ExactPlans&) = delete;

  void enqueue(const KeyedRequest& request);
  /// Waits until no request is left.
  void wait_until_idle();

 private:
  void work();

  const std::function<void(const KeyedRequest&)> make_;
  std::mutex mutex_;  // guards what follows
  std::condition_variable changed_;
  std::deque<KeyedRequest> waiting_;
  std::set<std::string, std::less<>> keys_;  // of these
  bool at_work_ = false;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace kiln
