#include "kiln/runtime/recheck.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <optional>
#include <random>
#include <span>

#include "kiln/base/error.h"
#include "kiln/checking/trusted_program.h"
#include "kiln/runtime/pack_check.h"
#include "kiln/tuner/timing.h"

namespace kiln {
namespace {

using cache::Record;

// Records that can be looked at, in the order in which they are: winners first, each part shuffled.
std::vector<const Record*> choose(const cache::Pack& contents, const Catalogue& catalogue, const std::string& device,
                                  const RecheckOptions& options, RecheckResult& result) {
  const cache::IsCurrent current = is_current(catalogue);
  std::vector<const Record*> winners, others;
  for (auto first = contents.records.begin(); first != contents.records.end();) {
    const auto last = std::find_if(first, contents.records.end(), [&](const Record& r) {
      return r.device != first->device || r.request != first->request;
    });
    const std::span<const Record> candidates(first, last);
    const Record* winner = cache::winner_among(candidates, current);
    const bool no_text = first->device == device && unknown_user_code(first->request, options.expressions);
    for (const Record& r : candidates) {
      if (!cache::usable(r) || r.kind == cache::TimeKind::predicted) continue;
      if (r.device != device) {
        ++result.other_devices;
      } else if (!current(r.algorithm, r.algorithm_digest)) {
        ++result.stale;
      } else if (no_text) {
        ++result.without_text;
      } else {
        (&r == winner ? winners : others).push_back(&r);
      }
    }
    first = last;
  }
  std::mt19937_64 random(options.seed);
  std::shuffle(winners.begin(), winners.end(), random);
  std::shuffle(others.begin(), others.end(), random);
  winners.insert(winners.end(), others.begin(), others.end());
  result.candidates = static_cast<int64_t>(winners.size());
  if (options.sample != 0 && winners.size() > options.sample) winners.resize(options.sample);
  // Records of one request stand together: making its operands is the dearest part.
  std::stable_sort(winners.begin(), winners.end(),
                   [](const Record* a, const Record* b) { return a->request < b->request; });
  return winners;
}

/// Puts one record after the other through the laboratory.
class Recheck {
 public:
  Recheck(const Catalogue& catalogue, tuner::Laboratory& laboratory, const RecheckOptions& options)
      : catalogue_(catalogue), laboratory_(laboratory), options_(options) {}
  Rechecked look_at(const Record& record) {
    Rechecked result;
    result.stored = record;
    try {
      result.error = attempt(record, result);
    } catch (const Error& error) {
      if (error.code() != ErrorCode::invalid_argument && error.code() != ErrorCode::parse_error) throw;
      result.error = error.what();  // the record names something that cannot be made
    }
    if (result.error.empty()) result.finding = compare(record.seconds, result.seconds);
    return result;
  }

  /// Gives back what the last request needed.
  void finish() {
    if (trusted_) laboratory_.discard(*trusted_);
    trusted_.reset();
    subject_.reset();
  }

 private:
  // Why it failed; empty if it was timed.
  std::string attempt(const Record& record, Rechecked& result) {
    const Request request = Request::parse(record.request, options_.expressions);
    if (std::string reason = begin(request); !reason.empty()) return reason;
    tuner::Trial trial = tuner::begin_trial(laboratory_.apparatus(), catalogue_, request,
                                            {record.algorithm, Config::parse(record.config)});
    Variants variants = catalogue_.on(request, target());
    const tuner::Programs programs = tuner::programs_of(variants, subject_->stand_in, trial.choice);
    tuner::add_program(trial, programs.program);
    const tuner::SpecimenId id = next_id_++;
    const std::optional<tuner::Failure> failure = try_out(id, programs, trial, result);
    laboratory_.discard(id);
    if (!failure) return {};
    trial.outcome = failure->outcome;
    trial.error = failure->error;
    trial.check = result.check;
    if (cache::bars(tuner::to_string(trial.outcome))) result.bar = std::move(trial);
    return described(*failure);
  }

  std::optional<tuner::Failure> try_out(tuner::SpecimenId id, const tuner::Programs& programs, tuner::Trial& trial,
                                        Rechecked& result) {
    const tuner::CompileReport compiled = compile(id, programs);
    if (compiled.failure) return compiled.failure;
    trial.resources = compiled.resources;
    const tuner::CheckReport report = tuner::in_two_attempts([&] { return laboratory_.check(id); });
    result.check = report.verdict;
    if (report.failure) return report.failure;
    const int count = laboratory_.apparatus().deterministic_time ? 1 : options_.samples;
    const tuner::SampleReport timed = tuner::in_two_attempts([&] { return laboratory_.sample(id, count); });
    if (timed.failure) return timed.failure;
    const tuner::Summary summary = tuner::summarise(timed.seconds);
    result.seconds = summary.median;
    result.spread = summary.half_width();
    return std::nullopt;
  }

  // Makes `request` the one that variants are checked for, if it is not already.
  std::string begin(const Request& request) {
    if (subject_ && subject_->request == request) return failure_to_begin_;
    finish();
    subject_ = {request, laboratory_.stand_in(request)};
    failure_to_begin_.clear();
    if (laboratory_.needs_trusted(subject_->checked())) {
      trusted_ = next_id_++;
      const auto compiled = compile(*trusted_, {checking::trusted_program(catalogue_, subject_->checked(), target())});
      if (compiled.failure) return failure_to_begin_ = described(*compiled.failure);
    }
    const tuner::CheckReport report = tuner::in_two_attempts([&] { return laboratory_.begin(*subject_, trusted_); });
    if (report.failure) failure_to_begin_ = "the trusted variant failed: " + report.failure->error;
    return failure_to_begin_;
  }

  tuner::CompileReport compile(tuner::SpecimenId id, const tuner::Programs& programs) {
    return tuner::in_two_attempts([&] {
      laboratory_.submit(id, programs);
      constexpr double patience = 1;  // seconds; the laboratory has its own limit for a compile
      std::optional<tuner::CompileReport> report;
      while (!report) report = laboratory_.collect(patience);
      return *report;
    });
  }

  static std::string described(const tuner::Failure& failure) {
    return fmt::format("{}: {}", tuner::to_string(failure.outcome), failure.error);
  }

  Rechecked::Finding compare(double stored, double now) const {
    if (now > stored * (1 + options_.tolerance)) return Rechecked::Finding::slower;
    if (now < stored * (1 - options_.tolerance)) return Rechecked::Finding::faster;
    return Rechecked::Finding::agrees;
  }

  const Target& target() const { return laboratory_.apparatus().target; }

  const Catalogue& catalogue_;
  tuner::Laboratory& laboratory_;
  const RecheckOptions& options_;
  tuner::SpecimenId next_id_ = 1;
  std::optional<tuner::Subject> subject_;
  std::optional<tuner::SpecimenId> trusted_;
  std::string failure_to_begin_;
};

}  // namespace

std::string_view to_string(Rechecked::Finding finding) {
  switch (finding) {
    case Rechecked::Finding::agrees:
      return "agrees";
    case Rechecked::Finding::faster:
      return "faster";
    case Rechecked::Finding::slower:
      return "slower";
    case Rechecked::Finding::failed:
      return "failed";
  }
  return "unknown";
}

RecheckResult recheck(const cache::Pack& contents, const Catalogue& catalogue, tuner::Laboratory& laboratory,
                      const RecheckOptions& options, const std::function<void(size_t, size_t)>& progress) {
  RecheckResult result;
  const std::string device = laboratory.apparatus().device.id();
  const std::vector<const Record*> chosen = choose(contents, catalogue, device, options, result);
  Recheck bench(catalogue, laboratory, options);
  for (size_t i = 0; i < chosen.size(); ++i) {
    if (progress) progress(i, chosen.size());
    result.checked.push_back(bench.look_at(*chosen[i]));
  }
  bench.finish();
  return result;
}

}  // namespace kiln
