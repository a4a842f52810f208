// BackgroundMaker: the thread that makes what calls did not wait for.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>

#include "kiln/generator/request.h"

namespace kiln {

/// Thread-safe. The thread begins with the first request.
class BackgroundMaker {
 public:
  using Make = std::function<void(const KeyedRequest&)>;

  /// Requests of each kind that wait, at most: of further ones those go that have waited longest.
  static constexpr size_t most_waiting = 1024;

  /// Are called for one request after the other, the latest first, in turns where there are both; what they throw is
  /// lost. `make_plan`: the plan of a shape that an open kernel serves meanwhile. `make_open_kernel`: a kernel for
  /// further sizes of a layer.
  BackgroundMaker(Make make_plan, Make make_open_kernel)
      : plans_{std::move(make_plan)}, open_kernels_{std::move(make_open_kernel)} {}
  /// Waits for what is being made, and for no other.
  ~BackgroundMaker();
  BackgroundMaker(const BackgroundMaker&) = delete;
  BackgroundMaker& operator=(const BackgroundMaker&) = delete;

  void enqueue_plan(const KeyedRequest& request) { enqueue(plans_, request); }
  void enqueue_open_kernel(const KeyedRequest& request) { enqueue(open_kernels_, request); }
  /// Waits until no request is left.
  void wait_until_idle();

 private:
  struct Queue {
    const Make make;
    std::deque<KeyedRequest> waiting{};
    std::set<std::string, std::less<>> keys{};  // of these

    void add(const KeyedRequest& request);
    KeyedRequest take_latest();
  };

  void enqueue(Queue& queue, const KeyedRequest& request);
  bool start();
  Queue* next();
  void work();

  std::mutex mutex_;  // guards what follows
  std::condition_variable changed_;
  Queue plans_, open_kernels_;
  Queue* latest_ = nullptr;
  bool at_work_ = false;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace kiln
