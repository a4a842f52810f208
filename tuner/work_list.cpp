#include "kiln/tuner/work_list.h"

#include <algorithm>
#include <chrono>
#include <functional>
#include <utility>

namespace kiln::tuner {
namespace {

std::vector<Work> of_equal_length(const std::vector<Job>& jobs) {
  std::vector<Work> work;
  work.reserve(jobs.size());
  for (const Job& job : jobs) work.push_back({job});
  return work;
}

}  // namespace

WorkList::WorkList(const std::vector<Job>& jobs) : WorkList(of_equal_length(jobs), 1) {}

WorkList::WorkList(std::vector<Work> work, size_t sessions) : results_(work.size()), sessions_(sessions) {
  std::vector<double> seconds;
  for (Work& each : work) {
    seconds.push_back(each.seconds);
    counts_.push_back({counts_.size(), 0, each.planned});
    items_.push_back({items_.size(), 0, std::move(each.job)});
  }
  std::stable_sort(items_.begin(), items_.end(),
                   [&](const Item& a, const Item& b) { return seconds[a.index] > seconds[b.index]; });
  for (size_t number = 0; number < items_.size(); ++number) items_[number].number = number;
  for (size_t number = items_.size(); number > 0; --number) queue_.push_back(number - 1);
}

std::vector<WorkList::Item> WorkList::take_at_most(size_t count) {
  std::vector<Item> taken;
  for (; !queue_.empty() && taken.size() < count; queue_.pop_back()) taken.push_back(items_[queue_.back()]);
  held_ += taken.size();
  return taken;
}

std::vector<WorkList::Item> WorkList::take() {
  const std::lock_guard lock(mutex_);
  return take_at_most(sessions_ == 1 ? queue_.size() : 1);
}

std::vector<WorkList::Item> WorkList::take_rest() {
  const std::lock_guard lock(mutex_);
  return take_at_most(queue_.size());
}

bool WorkList::wait(double seconds) {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, std::chrono::duration<double>(seconds), [&] { return !queue_.empty() || held_ == 0; });
  return !queue_.empty() || held_ > 0;
}

void WorkList::deliver(const Item& item, JobResult result) {
  {
    const std::lock_guard lock(mutex_);
    results_[item.index] = std::move(result);
    --held_;
  }
  changed_.notify_all();
}

void WorkList::leave(const std::vector<Item>& unfinished) {
  {
    const std::lock_guard lock(mutex_);
    for (const Item& item : unfinished) queue_.push_back(item.number);
    std::sort(queue_.begin(), queue_.end(), std::greater<>());
    held_ -= unfinished.size();
    --sessions_;
  }
  changed_.notify_all();
}

std::vector<Job> WorkList::jobs() const {
  std::vector<Job> jobs(items_.size());
  for (const Item& item : items_) jobs[item.index] = item.job;
  return jobs;
}

size_t WorkList::waiting() const {
  const std::lock_guard lock(mutex_);
  return queue_.size();
}

void WorkList::note(std::span<const Count> counts) {
  const std::lock_guard lock(mutex_);
  for (const Count& count : counts) counts_[count.index] = count;
}

WorkList::Count WorkList::counts() const {
  const std::lock_guard lock(mutex_);
  Count sum{.index = counts_.size()};
  for (const Count& count : counts_) {
    sum.tried += count.tried;
    sum.planned += count.planned;
  }
  return sum;
}

std::vector<JobResult> WorkList::take_results(const std::string& why) {
  std::vector<JobResult> results(results_.size());
  for (const Item& item : items_) {
    std::optional<JobResult>& result = results_[item.index];
    if (!result) {
      result.emplace();
      result->request = item.job.request;
      result->count = item.job.count;
      result->status = JobStatus::failed;
      result->error = why;
    }
    results[item.index] = std::move(*result);
  }
  return results;
}

}  // namespace kiln::tuner
