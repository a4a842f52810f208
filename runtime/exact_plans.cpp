#include "exact_plans.h"

#include <utility>

namespace kiln {

ExactPlans::~ExactPlans() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void ExactPlans::enqueue(const KeyedRequest& request) {
  {
    const std::lock_guard lock(mutex_);
    if (stopping_ || keys_.contains(request.key())) return;
    if (!thread_.joinable()) thread_ = std::thread([this] { work(); });  // first: without it nobody takes a request out
    keys_.insert(request.key());
    waiting_.push_back(request);
    if (waiting_.size() > most_waiting) {
      keys_.erase(waiting_.front().key());
      waiting_.pop_front();
    }
  }
  changed_.notify_all();
}

void ExactPlans::wait_until_idle() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return waiting_.empty() && !at_work_; });
}

void ExactPlans::work() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return stopping_ || !waiting_.empty(); });
    if (stopping_) return;
    const KeyedRequest request = std::move(waiting_.back());
    waiting_.pop_back();
    keys_.erase(request.key());
    at_work_ = true;
    lock.unlock();
    make_(request);
    lock.lock();
    at_work_ = false;
    changed_.notify_all();
  }
}

}  // namespace kiln
