// A device, a clock and algorithms made of thin air, to test the tuner's logic with.
#pragma once

#include <algorithm>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "kiln/generator/catalogue.h"
#include "kiln/tuner/laboratory.h"
#include "kiln/tuner/session.h"

namespace kiln::tuner::fakes {

struct ToyParameters {
  int tile;
};

struct ToyTraits {
  bool trusted = false;
  int64_t workspace = 0;  ///< bytes
  bool deterministic = true;
};

/// An algorithm for softmax whose source is its own name. Predicts `estimate` * TILE seconds.
inline Algorithm toy(const std::string& name, std::vector<int64_t> tiles, double estimate, ToyTraits traits = {}) {
  auto open = describe<ToyParameters>(name, "softmax_forward", "toy.cu").param("TILE", &ToyParameters::tile, tiles);
  auto description = traits.trusted ? std::move(open).trusted() : std::move(open);
  return std::move(description)
      .program([=](const ToyParameters& p, const Request& request, const Target&, const Emitter&) {
        Program program;
        program.sources = {name + " TILE=" + std::to_string(p.tile) + " for " + request.key()};
        program.steps = {Launch{.source = 0, .entry = "toy", .grid = {}, .arguments = {}}};
        program.workspace_bytes = traits.workspace;
        program.deterministic = traits.deterministic;
        return program;
      })
      .estimate([=](const ToyParameters& p, const Request&, const Target&, const DeviceFigures&) {
        return Estimate{.seconds = estimate * p.tile};
      });
}

/// The same, as if it had been read from a user's folder.
inline Algorithm user_toy(const std::string& name, std::vector<int64_t> tiles, double estimate) {
  const Algorithm plain = toy(name, std::move(tiles), estimate);
  Algorithm::Definition made;
  made.name = name;
  made.operation = plain.operation();
  made.template_path = plain.template_path();
  made.user_template = true;
  made.space = plain.space();
  made.bind = plain.definition().bind;
  return Algorithm(std::move(made));
}

inline Catalogue toy_catalogue(std::vector<Algorithm> algorithms) {
  algorithms.push_back(toy("trusted", {1}, 100, {.trusted = true}));
  return {SourceLibrary({{"toy.cu", ""}, {"toy.cpp", ""}, {"lib/types.cuh", ""}}), std::move(algorithms)};
}

inline Request toy_request(int rows = 1) {
  return Request::parse("softmax_forward x=f32:" + std::to_string(rows) + "x1000:nc y=f32:" + std::to_string(rows) +
                        "x1000:nc axis=1 mode=accurate");
}

/// How a fake variant behaves. Failures are taken from the front, one per attempt; then all goes well.
struct Behaviour {
  double seconds = 1e-3;
  std::vector<double> noise{};            ///< Added to the samples in turn.
  int spill_stores = 0, spill_loads = 0;  ///< Bytes a thread.
  std::deque<Failure> compile_failures{}, check_failures{}, sample_failures{};
};

/// Behaviours are found by the start of a program's source ("fast TILE=16 for softmax_forward ..."); the longest match
/// counts.
class FakeLaboratory : public Laboratory {
 public:
  FakeLaboratory() {
    apparatus_.device.name = "Fake";
    apparatus_.device.cc_major = 9;
    apparatus_.device.emulated = true;
    apparatus_.figures = {.sms = 132, .clock_hz = 1.98e9, .dram_bytes_per_second = 4.8e12, .l2_bytes = 60 << 20};
    apparatus_.target = {.arch = Arch::of(9, 0), .nvrtc_major = 13, .nvrtc_minor = 0};
    apparatus_.driver_version = "13.0";
    apparatus_.nvrtc_version = "13.0";
    apparatus_.deterministic_time = true;
  }

  // Costs on the fake clock, seconds.
  double check_cost = 0.1, sample_cost = 0.01;  // a modelled sample costs nothing
  double now = 0;
  bool trusted_needed = false;
  std::optional<Request> smaller;  ///< Stand-in for requests with a larger batch.
  std::map<std::string, Behaviour> behaviours;
  std::vector<std::string> log;       ///< "compile fast TILE=16", "check ...", "sample ...", "begin"
  std::vector<std::string> compiled;  ///< Sources, in their order.
  std::function<void()> on_check;
  std::string hangs_at;  ///< A step whose log line begins so never ends by itself.

  void set_noisy() { apparatus_.deterministic_time = false; }
  std::function<double()> clock() {
    return [this] { return now; };
  }
  size_t count(const std::string& entry) const {
    return static_cast<size_t>(
        std::count_if(log.begin(), log.end(), [&](const std::string& line) { return line.starts_with(entry); }));
  }
  size_t known_specimens() const { return names_.size(); }

  const Apparatus& apparatus() const override { return apparatus_; }
  size_t compile_lanes() const override { return 2; }

  std::optional<Request> stand_in(const Request& request) const override {
    return smaller && request.batch() > smaller->batch() ? smaller : std::nullopt;
  }

  void submit(SpecimenId id, const Programs& programs) override {
    const std::string& source = programs.program.sources.front().code;
    if (programs.stand_in) log.push_back("stand-in " + programs.stand_in->sources.front().code);
    sources_[id] = source;
    names_[id] = source.substr(0, source.find(" for "));
    submitted_.push_back(id);
  }

  std::optional<CompileReport> collect(double) override {
    if (submitted_.empty()) return std::nullopt;
    CompileReport report;
    report.id = submitted_.front();
    submitted_.pop_front();
    log.push_back("compile " + names_[report.id]);
    compiled.push_back(sources_[report.id]);
    report.failure = next_failure(behaviour(report.id).compile_failures);
    report.resources.spill_stores = behaviour(report.id).spill_stores;
    report.resources.spill_loads = behaviour(report.id).spill_loads;
    report.seconds = 0.05;
    return report;
  }

  bool needs_trusted(const Request&) const override { return trusted_needed; }

  CheckReport begin(const Subject& subject, std::optional<SpecimenId> trusted) override {
    log.push_back("begin " + subject.checked().key() + (trusted ? " with trusted" : ""));
    CheckReport report;
    report.failure = hang();
    if (report.failure) return report;
    if (trusted) report.failure = next_failure(behaviour(*trusted).check_failures);
    return report;
  }

  CheckReport check(SpecimenId id) override {
    log.push_back("check " + names_[id]);
    now += check_cost;
    if (on_check) on_check();
    CheckReport report;
    report.failure = hang();
    if (report.failure) return report;
    report.failure = next_failure(behaviour(id).check_failures);
    report.verdict = "fine";
    return report;
  }

  SampleReport sample(SpecimenId id, int count) override {
    SampleReport report;
    Behaviour& how = behaviour(id);
    report.failure = next_failure(how.sample_failures);
    for (int i = 0; i < count; ++i) {
      log.push_back("sample " + names_[id]);
      if (!apparatus_.deterministic_time) now += sample_cost;
      const double noise = how.noise.empty() ? 0 : how.noise[taken_[id]++ % how.noise.size()];
      report.seconds.push_back(how.seconds + noise);
    }
    return report;
  }

  void discard(SpecimenId id) override {
    names_.erase(id);
    std::erase(submitted_, id);
  }

 private:
  // Waits until it is told to end the step that was logged last, if that is one that hangs.
  std::optional<Failure> hang() {
    if (hangs_at.empty() || !log.back().starts_with(hangs_at)) return std::nullopt;
    while (may_go_on()) now += 0.5;
    return Failure{Outcome::timed_out, "ended"};
  }

  static std::optional<Failure> next_failure(std::deque<Failure>& failures) {
    if (failures.empty()) return std::nullopt;
    Failure failure = failures.front();
    failures.pop_front();
    return failure;
  }

  Behaviour& behaviour(SpecimenId id) {
    Behaviour* best = nullptr;
    size_t length = 0;
    for (auto& [start, how] : behaviours) {
      if (sources_[id].starts_with(start) && (best == nullptr || start.size() > length)) {
        best = &how;
        length = start.size();
      }
    }
    return best != nullptr ? *best : behaviours[names_[id]];
  }

  Apparatus apparatus_;
  std::map<SpecimenId, std::string> names_, sources_;
  std::map<SpecimenId, size_t> taken_;
  std::deque<SpecimenId> submitted_;
};

}  // namespace kiln::tuner::fakes
