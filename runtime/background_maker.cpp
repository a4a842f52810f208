#include "background_maker.h"

#include <exception>
#include <utility>

namespace kiln {

BackgroundMaker::~BackgroundMaker() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void BackgroundMaker::Queue::add(const KeyedRequest& request) {
  const auto key = keys.insert(request.key()).first;
  try {
    waiting.push_back(request);
  } catch (...) {
    keys.erase(key);  // else it would be refused for good
    throw;
  }
  if (waiting.size() <= most_waiting) return;
  keys.erase(waiting.front().key());
  waiting.pop_front();
}

KeyedRequest BackgroundMaker::Queue::take_latest() {
  KeyedRequest request = std::move(waiting.back());
  waiting.pop_back();
  keys.erase(request.key());
  return request;
}

void BackgroundMaker::enqueue(Queue& queue, const KeyedRequest& request) {
  {
    const std::lock_guard lock(mutex_);
    if (stopping_ || queue.keys.contains(request.key())) return;
    if (!thread_.joinable() && !start()) return;  // without it nobody takes a request out
    queue.add(request);
  }
  changed_.notify_all();
}

void BackgroundMaker::wait_until_idle() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return next() == nullptr && !at_work_; });
}

// Calls go on without the thread where there is none to be had. With `mutex_` held.
bool BackgroundMaker::start() {
  try {
    thread_ = std::thread([this] { work(); });
    return true;
  } catch (const std::exception&) {
    return false;
  }
}

// In turns: where sizes come faster than their plans are made, open kernels would never be. Null where nothing waits.
// With `mutex_` held.
BackgroundMaker::Queue* BackgroundMaker::next() {
  Queue& first = latest_ == &plans_ ? open_kernels_ : plans_;
  Queue& second = latest_ == &plans_ ? plans_ : open_kernels_;
  if (!first.waiting.empty()) return &first;
  return second.waiting.empty() ? nullptr : &second;
}

void BackgroundMaker::work() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return stopping_ || next() != nullptr; });
    if (stopping_) return;
    latest_ = next();
    const Queue& queue = *latest_;
    const KeyedRequest request = latest_->take_latest();
    at_work_ = true;
    lock.unlock();
    try {
      queue.make(request);
    } catch (const std::exception&) {
      // The application's listener, which was to hear of a failure. Calls are served as before.
    }
    lock.lock();
    at_work_ = false;
    changed_.notify_all();
  }
}

}  // namespace kiln
