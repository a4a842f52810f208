#include "background_maker.h"

#include <system_error>
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
  waiting.push_back(request);
  keys.insert(request.key());
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
  } catch (const std::system_error&) {
    return false;
  }
}

// Null where nothing waits. With `mutex_` held.
BackgroundMaker::Queue* BackgroundMaker::next() {
  if (!plans_.waiting.empty()) return &plans_;
  return open_kernels_.waiting.empty() ? nullptr : &open_kernels_;
}

void BackgroundMaker::work() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return stopping_ || next() != nullptr; });
    if (stopping_) return;
    Queue& queue = *next();
    const KeyedRequest request = queue.take_latest();
    at_work_ = true;
    lock.unlock();
    queue.make(request);
    lock.lock();
    at_work_ = false;
    changed_.notify_all();
  }
}

}  // namespace kiln
