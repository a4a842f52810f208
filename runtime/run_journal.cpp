#include "kiln/runtime/run_journal.h"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <utility>

namespace kiln {
namespace {

constexpr std::int64_t least_interval_ms = 1000;  // a write waits for the disk

std::string this_process() {
  std::array<char, 256> name{};
  return fmt::format("{}:{}", gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "?", getpid());
}

cache::RunLayer layer_of(const tuner::JobResult& result) {
  cache::RunLayer layer{result.request.key(), cache::LayerState::done, {}};
  if (result.status == tuner::JobStatus::stopped) {
    layer.state = cache::LayerState::left;
  } else if (result.status == tuner::JobStatus::failed) {
    layer.state = cache::LayerState::failed;
    layer.error = result.error;
  } else if (!result.best && result.status == tuner::JobStatus::out_of_time) {
    layer.state = cache::LayerState::left;
  } else if (!result.best) {
    layer.state = cache::LayerState::failed;
    layer.error = fmt::format("none of {} variants can be used", result.trials.size());
  }
  return layer;
}

}  // namespace

void RunJournal::begin(const RunLabel& label, const std::vector<tuner::Job>& jobs) {
  active_ = true;
  written_ms_ = cache::utc_now_ms();
  std::vector<std::string> requests;
  for (const tuner::Job& job : jobs) requests.push_back(job.request.key());
  database_.begin_run({session_, label.workload, label.part, this_process(), written_ms_, std::nullopt}, requests);
}

void RunJournal::heard(const tuner::Progress& progress) {
  if (!active_) return;
  if (begun_.insert(progress.request).second) {
    pending_.push_back({progress.request, cache::LayerState::running, {}});
  }
  seconds_left_ = progress.remaining;
  write_if_due();
}

void RunJournal::idle(std::optional<double> seconds_left) {
  if (!active_) return;
  seconds_left_ = seconds_left;
  write_if_due();
}

void RunJournal::concluded(const tuner::JobResult& result) {
  if (!active_) return;
  begun_.insert(result.request.key());
  pending_.push_back(layer_of(result));
}

void RunJournal::end() {
  if (active_) write(cache::utc_now_ms());
  active_ = false;
}

void RunJournal::write_if_due() {
  const std::int64_t now = cache::utc_now_ms();
  if (now - written_ms_ >= (pending_.empty() ? heartbeat_ms : least_interval_ms)) write(now);
}

void RunJournal::write(std::int64_t now) {
  database_.report_run(session_, now, seconds_left_, pending_);
  pending_.clear();
  written_ms_ = now;
}

}  // namespace kiln
