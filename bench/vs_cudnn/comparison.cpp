#include "comparison.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <limits>
#include <optional>
#include <thread>
#include <utility>

#include "comparison_sides.h"
#include "cudnn_offers.h"
#include "kiln/base/parallel.h"
#include "kiln/generator/operation.h"

namespace kiln::bench {
namespace {

constexpr int screening_laps = 3;
constexpr size_t finalists = 5;
constexpr int final_laps = 5;
constexpr double screening_share = 0.6;  // of a row's time

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2), values.end());
  return values[values.size() / 2];
}

// Rethrows the error at work if the device is lost: no later row can run then.
void rethrow_if_lost(const Error& error) {
  const auto* driver = dynamic_cast<const device::DriverError*>(&error);
  if (driver != nullptr && driver->is_sticky()) throw;
}

class Clock {
 public:
  double seconds() const { return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count(); }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

struct Contender {
  size_t config;  // index into the row's
  std::unique_ptr<CudnnSide> side;
  std::vector<double> laps;
};

// One row at work.
class RowRun {
 public:
  RowRun(RowResult& row, const Request& request, const std::shared_ptr<const device::ContextHandle>& device,
         const device::Stream& stream, const CudnnHandle& cudnn,
         const std::vector<std::unique_ptr<CudnnHandle>>& builders, const ComparisonOptions& options, double seconds)
      : row_(row),
        request_(request),
        device_(device),
        stream_(stream),
        cudnn_(cudnn),
        builders_(builders),
        options_(options),
        limit_(seconds),
        operands_(device, request),
        judge_(request, operands_) {
    row_.sets = static_cast<int64_t>(operands_.count());
  }

  // Kiln's output must be right before anything is timed.
  bool take_kiln(const Plan& plan) {
    kiln_.emplace(device_, plan, operands_);
    row_.kiln_variant = kiln_->plan().variant();
    row_.kiln_source = kiln_->plan().source();
    row_.kiln_workspace_bytes = kiln_->plan().workspace_bytes();
    row_.kiln_error = judge_.error_of(operands_, stream_, [&] { kiln_->run(stream_.raw(), 0); });
    kiln_output_ = operands_.output(0);
    if (row_.kiln_error <= error_limit(result_of(request_).spec.dtype)) return true;
    row_.status = "failed";
    row_.reason = fmt::format("Kiln's output is wrong: relative error {:.3g}", row_.kiln_error);
    return false;
  }

  // Builds, checks and screens everything that cuDNN offers; keeps the fastest few.
  void screen() {
    const std::vector<CudnnOffer> offers = cudnn_offers(cudnn_, request_);
    build_ahead(offers);
    for (const CudnnOffer& offer : offers) {
      ConfigResult& result = row_.configs.emplace_back();
      result.name = offer.name;
      result.heuristic = offer.heuristic;
      try {
        try_offer(offer, result);
      } catch (const WorkspaceTooLarge& error) {
        conclude(result, "too much workspace", error);
      } catch (const Error& error) {
        rethrow_if_lost(error);
        conclude(result, error.code() == ErrorCode::unsupported ? "refused" : "failed", error);
      }
    }
  }

  // The configuration that meets Kiln: of the fastest few, the fastest in laps taken in turns.
  bool choose() {
    if (contenders_.size() > 1) race();
    const auto best = std::min_element(contenders_.begin(), contenders_.end(),
                                       [](const auto& a, const auto& b) { return median(a.laps) < median(b.laps); });
    if (best == contenders_.end()) {
      row_.status = "no cuDNN configuration";
      row_.reason = row_.configs.empty()
                        ? "cuDNN offers nothing for it"
                        : fmt::format("none of {} offered ran with equal arithmetic", row_.configs.size());
      return false;
    }
    opponent_ = std::move(best->side);
    row_.cudnn_config = row_.configs[best->config].name;
    row_.cudnn_workspace_bytes = opponent_->workspace_bytes();
    row_.cudnn_error = judge_.error_of(operands_, stream_, [&] { opponent_->run(0); });
    row_.difference = judge_.difference(kiln_output_, operands_.output(0));
    estimate_ = median(best->laps);
    contenders_.clear();
    return true;
  }

  // Pairs of laps until the ratio is known well enough or time is up. Graphs where runs are short, for both or neither.
  void duel() {
    if (estimate_ < options_.graph_below) {
      try {
        duel(Start::graph);
        return;
      } catch (const Error& error) {
        rethrow_if_lost(error);  // one side cannot be captured: both start directly
        row_.kiln_seconds.clear();
        row_.cudnn_seconds.clear();
        row_.reason = fmt::format("not as graphs: {}", error.what());
      }
    }
    duel(Start::direct);
  }

 private:
  static void conclude(ConfigResult& result, const char* outcome, const Error& error) {
    result.outcome = outcome;
    result.detail = error.what();
  }

  bool screening_time_is_up() const { return clock_.seconds() > limit_ * screening_share; }

  // cuDNN compiles many of its kernels for a plan, up to a second each: on all threads, before anything is timed.
  void build_ahead(const std::vector<CudnnOffer>& offers) {
    std::atomic<size_t> next{0};
    for_each_index(builders_.size(), [&](size_t builder) {
      const device::Current current(*device_);
      for (size_t i = next++; i < offers.size() && !screening_time_is_up(); i = next++) {
        if (offers[i].build) offers[i].build(*builders_[builder]);
      }
    });
  }

  void try_offer(const CudnnOffer& offer, ConfigResult& result) {
    if (!offer.outcome.empty()) {
      result.outcome = offer.outcome;
      result.detail = offer.detail;
      return;
    }
    if (screening_time_is_up() && !contenders_.empty()) {
      result.outcome = "no time";
      return;
    }
    auto side = offer.prepare(device_, options_.workspace_limit, operands_);
    result.workspace_bytes = side->workspace_bytes();
    const double error = judge_.error_of(operands_, stream_, [&] { side->run(0); });
    if (!(error <= error_limit(result_of(request_).spec.dtype))) {
      result.outcome = "wrong";
      result.detail = fmt::format("relative error {:.3g}", error);
      return;
    }
    std::vector<double> laps;
    const auto timer = timer_of(*side, Start::direct);
    for (int lap = 0; lap < screening_laps; ++lap) laps.push_back(timer->seconds_per_run());
    result.outcome = "timed";
    result.seconds = median(laps);
    keep({row_.configs.size() - 1, std::move(side), std::move(laps)});
  }

  // Laps of the finalists in turns, as graphs where runs are short: one by one, the host would decide.
  void race() {
    std::vector<std::unique_ptr<LapTimer>> timers;
    for (Contender& contender : contenders_) {
      const auto start = median(contender.laps) < options_.graph_below ? Start::graph : Start::direct;
      contender.laps.clear();
      timers.push_back(timer_of(*contender.side, start));
    }
    for (int lap = 0; lap < final_laps; ++lap) {
      for (size_t i = 0; i < timers.size(); ++i) contenders_[i].laps.push_back(timers[i]->seconds_per_run());
    }
  }

  std::unique_ptr<LapTimer> timer_of(const CudnnSide& side, Start start) const {
    const auto run = [&side](cuda_abi::CUstream, size_t set) { side.run(set); };
    try {
      return std::make_unique<LapTimer>(device_, stream_, operands_.count(), run, start);
    } catch (const Error& error) {
      rethrow_if_lost(error);
      if (start == Start::direct) throw;
      return timer_of(side, Start::direct);  // it cannot be captured
    }
  }

  void keep(Contender contender) {
    contenders_.push_back(std::move(contender));
    std::sort(contenders_.begin(), contenders_.end(),
              [](const auto& a, const auto& b) { return median(a.laps) < median(b.laps); });
    if (contenders_.size() > finalists) contenders_.pop_back();
  }

  void duel(Start start) {
    LapTimer ours(
        device_, stream_, operands_.count(), [&](cuda_abi::CUstream stream, size_t set) { kiln_->run(stream, set); },
        start);
    LapTimer theirs(
        device_, stream_, operands_.count(), [&](cuda_abi::CUstream, size_t set) { opponent_->run(set); }, start);
    row_.start = start == Start::graph ? "graph" : "direct";
    ours.seconds_per_run();  // warm-up
    theirs.seconds_per_run();
    for (int64_t pair = 0; !options_.stop.satisfied(row_.ratio()); ++pair) {
      if (pair >= options_.stop.least && clock_.seconds() > limit_) break;
      const bool ours_first = pair % 2 == 0;
      if (ours_first) row_.kiln_seconds.push_back(ours.seconds_per_run());
      row_.cudnn_seconds.push_back(theirs.seconds_per_run());
      if (!ours_first) row_.kiln_seconds.push_back(ours.seconds_per_run());
    }
  }

  RowResult& row_;
  const Request& request_;
  std::shared_ptr<const device::ContextHandle> device_;
  const device::Stream& stream_;
  const CudnnHandle& cudnn_;
  const std::vector<std::unique_ptr<CudnnHandle>>& builders_;
  const ComparisonOptions& options_;
  double limit_;
  Clock clock_;
  OperandSets operands_;
  OutputJudge judge_;
  std::optional<KilnSide> kiln_;
  std::vector<std::byte> kiln_output_;
  std::vector<Contender> contenders_;  // fastest first
  std::unique_ptr<CudnnSide> opponent_;
  double estimate_ = 0;
};

}  // namespace

double error_limit(DType dtype) {
  switch (dtype) {
    case DType::f16:
      return 2e-3;
    case DType::bf16:
      return 1e-2;
    default:
      return 1e-4;
  }
}

double relative_error(const std::vector<double>& got, const std::vector<double>& expected) {
  double difference = 0, size = 0;
  for (size_t i = 0; i < expected.size(); ++i) {
    difference += (got[i] - expected[i]) * (got[i] - expected[i]);
    size += expected[i] * expected[i];
  }
  if (!std::isfinite(difference) || !std::isfinite(size)) return std::numeric_limits<double>::infinity();
  return size > 0 ? std::sqrt(difference / size) : std::sqrt(difference);
}

Comparison::Comparison(Context& kiln, std::shared_ptr<const device::ContextHandle> device, const device::Stream& stream,
                       const CudnnHandle& cudnn, const ComparisonOptions& options)
    : kiln_(kiln), device_(std::move(device)), stream_(stream), cudnn_(cudnn), options_(options) {
  const unsigned threads = options.threads == 0 ? std::thread::hardware_concurrency() : options.threads;
  for (unsigned i = 0; i < threads && threads > 1; ++i) {
    builders_.push_back(std::make_unique<CudnnHandle>(cudnn.library(), stream.raw()));
  }
}

RowResult Comparison::run(const Request& request, double seconds) {
  RowResult row;
  row.request = request.key();
  if (const auto why = not_comparable(request)) {
    row.status = "not comparable";
    row.reason = *why;
    return row;
  }
  const Clock clock;
  try {
    row.roofline_seconds = kiln_.explain(request).roofline_seconds;
    RowRun run(row, request, device_, stream_, cudnn_, builders_, options_, seconds);
    if (run.take_kiln(kiln_.plan(request))) {
      run.screen();
      if (run.choose()) {
        run.duel();
        row.status = "compared";
      }
    }
  } catch (const Error& error) {
    rethrow_if_lost(error);
    row.status = "failed";
    row.reason = error.what();
  }
  row.wall_seconds = clock.seconds();
  return row;
}

}  // namespace kiln::bench
