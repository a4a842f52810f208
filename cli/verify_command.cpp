// kiln verify: check variants against the reference.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <optional>

#include "all_sizes.h"
#include "checks.h"
#include "command_line.h"
#include "commands.h"
#include "device_choice.h"
#include "input.h"
#include "json.h"
#include "kiln/base/error.h"
#include "kiln/base/printable.h"
#include "kiln/checking/trusted_program.h"
#include "kiln/reference/fill.h"
#include "kiln/runtime/settings.h"
#include "kiln/tuner/laboratory.h"
#include "output.h"
#include "short_forms.h"

namespace kiln::cli {
namespace {

// Prints at once, though standard output may be a file or a pipe: a row may take long. A failure stays marked, for
// finish_output().
void print_now(const std::string& text) {
  fmt::print("{}", text);
  std::fflush(stdout);
}

struct VerifyOptions {
  Input input;
  DeviceChoice device;
  std::string sample;
  std::optional<double> run_limit;  // seconds
  uint64_t seed = 1;
  bool quiet = false;
  Output output;
};

// How many variants of each request: one per algorithm, a number, or all.
struct SampleSize {
  bool per_algorithm = true;
  size_t count = 0;  // if not per algorithm; 0: all
};

SampleSize parse_sample(const std::string& text) {
  if (text.empty()) return {};
  if (text == "all") return {false, 0};
  size_t count = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), count);
  if (error != std::errc() || stop != text.data() + text.size() || count == 0) {
    throw Error(ErrorCode::invalid_argument, fmt::format("--sample {} is neither a number from 1 up nor all", text));
  }
  return {false, count};
}

// The first legal point of every algorithm, then, if more are asked for, others in a seeded order.
std::vector<Choice> choices_for(const Catalogue& catalogue, const Request& request, const Target& target,
                                const SampleSize& size, uint64_t seed) {
  std::vector<Choice> firsts, others;
  Variants variants = catalogue.on(request, target);
  for (const Algorithm& algorithm : catalogue.algorithms()) {
    bool first = true;
    variants.on(algorithm).for_each_legal([&](const Config& config) {
      (first ? firsts : others).push_back({algorithm.name(), config});
      first = false;
      return !size.per_algorithm;
    });
  }
  if (size.per_algorithm) return firsts;
  for (size_t i = others.size(); i > 1; --i) {
    std::swap(others[i - 1], others[reference::random_bits(seed, i) % i]);
  }
  firsts.insert(firsts.end(), others.begin(), others.end());
  if (size.count != 0 && firsts.size() > size.count) firsts.resize(size.count);
  return firsts;
}

struct Tally {
  size_t passed = 0, failed = 0;
  size_t unchecked = 0;  // what was refused, or had no memory: nothing is known of its results
};

// Finding on one variant, or on a condition that all need.
struct Finding {
  std::string request;
  std::vector<std::string> nodes;  // of a model, which the request serves
  std::string name;
  std::optional<tuner::Failure> failure;
  std::string verdict;  // of the check
};

Json json_of(const Finding& finding) {
  return {{"request", finding.request}, {"nodes", finding.nodes},
          {"variant", finding.name},    {"outcome", finding.failure ? to_string(finding.failure->outcome) : "ok"},
          {"check", finding.verdict},   {"error", finding.failure ? finding.failure->error : ""}};
}

/// Compiles and checks variants in worker processes, so that one that crashes or hangs is a wrong one, not the end.
class Verification {
 public:
  Verification(tuner::Laboratory& laboratory, const Catalogue& catalogue, const ModelNodes& nodes, bool quiet,
               bool json)
      : laboratory_(laboratory), catalogue_(catalogue), nodes_(nodes), quiet_(quiet), json_(json) {}

  const Tally& tally() const { return tally_; }
  /// With `json`, what was found; else it was printed.
  const Json& findings() const { return findings_; }

  void verify(const Request& request, const SampleSize& size, uint64_t seed) {
    verify(request, [&] { return choices_for(catalogue_, request, target(), size, seed); });
  }

  /// The variants that `choices` gives, once the operands of the request are there.
  void verify(const Request& request, const std::function<std::vector<Choice>()>& choices) {
    if (!quiet_ && !json_) {
      print_now(
          fmt::format("{}{}\n", summary(request), nodes_.empty() ? "" : ": " + printable_line(nodes_.text(request))));
    }
    request_ = &request;
    if (begin()) verify_all(choices());
  }

 private:
  struct Trusted {
    Program program;
    tuner::CompileReport compiled;
  };

  const Target& target() const { return laboratory_.apparatus().target; }

  tuner::SpecimenId submit(const Program& program) {
    laboratory_.submit(next_id_, {program});
    return next_id_++;
  }

  // Makes the operands; where the check needs it, the trusted variant is run first.
  bool begin() {
    if (!laboratory_.needs_trusted(*request_)) return report("operands", begin({}).failure);
    const std::string name = catalogue_.trusted(request_->operation).name() + " (trusted)";
    Program program;
    try {
      program = checking::trusted_program(catalogue_, *request_, target());
    } catch (const Error& error) {  // nothing can be made of the request
      return report(name, tuner::Failure{tuner::Outcome::refused, error.what()});
    }
    trusted_ = Trusted{program, compiled(submit(program))};
    const bool passed = report(name, trusted_->compiled.failure) && report(name, begin(trusted_->compiled.id).failure);
    if (!passed) forget_trusted();
    return passed;
  }

  tuner::CheckReport begin(std::optional<tuner::SpecimenId> trusted) {
    return tuner::in_two_attempts([&] { return laboratory_.begin({*request_}, trusted); });
  }

  void forget_trusted() {
    if (trusted_) laboratory_.discard(trusted_->compiled.id);
    trusted_.reset();
  }

  // Submits the program of a choice; returns the trusted variant, compiled already, if it is the same.
  tuner::SpecimenId submit(const Choice& choice) {
    const Program program = catalogue_.program(*request_, target(), choice);
    return trusted_ && program == trusted_->program ? trusted_->compiled.id : submit(program);
  }

  bool is_trusted(tuner::SpecimenId id) const { return trusted_ && id == trusted_->compiled.id; }

  // Keeps every compiler busy while the device checks, holds few compiled kernels at a time, and reports in order.
  void verify_all(const std::vector<Choice>& choices) {
    const size_t window = 2 * laboratory_.compile_lanes() + 1;
    std::vector<tuner::SpecimenId> ids;
    for (size_t i = 0; i < choices.size(); ++i) {
      while (ids.size() < choices.size() && ids.size() < i + window) {
        ids.push_back(submit(choices[ids.size()]));
      }
      verify_choice(choices[i], is_trusted(ids[i]) ? trusted_->compiled : compiled(ids[i]));
      if (!is_trusted(ids[i])) laboratory_.discard(ids[i]);
    }
    forget_trusted();
  }

  tuner::CompileReport compiled(tuner::SpecimenId id) {
    constexpr double long_wait = 3600;  // the laboratory itself ends a compile that hangs
    while (!early_.contains(id)) {
      if (std::optional<tuner::CompileReport> report = laboratory_.collect(long_wait)) {
        early_.emplace(report->id, std::move(*report));
      }
    }
    return std::move(early_.extract(id).mapped());
  }

  void verify_choice(const Choice& choice, const tuner::CompileReport& compiled) {
    const std::string name = choice.algorithm + " " + choice.config.print();
    if (!report(name, compiled.failure)) return;
    const tuner::CheckReport checked = tuner::in_two_attempts([&] { return laboratory_.check(compiled.id); });
    if (!report(name, checked.failure)) return;
    ++tally_.passed;
    if (json_)
      findings_.push_back(json_of({request_->key(), nodes_.of(*request_), name, std::nullopt, checked.verdict}));
    else if (!quiet_)
      print_now(fmt::format("  ok    {}: {}\n", name, checked.verdict));
  }

  // Counts and prints a failure; true if there was none.
  bool report(const std::string& name, const std::optional<tuner::Failure>& failure) {
    if (!failure) return true;
    const bool is_wrong = failure->outcome == tuner::Outcome::wrong_result;
    const bool is_unchecked =
        failure->outcome == tuner::Outcome::refused || failure->outcome == tuner::Outcome::out_of_memory;
    ++(is_unchecked ? tally_.unchecked : tally_.failed);
    if (json_) {
      findings_.push_back(json_of({request_->key(), nodes_.of(*request_), name, failure, ""}));
      return false;
    }
    print_now(fmt::format("  {} {}: {}: {}\n    {}\n", is_wrong ? "WRONG" : "FAILED", name, to_string(failure->outcome),
                          printable(failure->error), request_->key()));
    return false;
  }

  tuner::Laboratory& laboratory_;
  const Catalogue& catalogue_;
  const ModelNodes& nodes_;
  bool quiet_;
  bool json_;
  Json findings_ = Json::array();
  const Request* request_ = nullptr;
  std::optional<Trusted> trusted_;
  tuner::SpecimenId next_id_ = 1;
  std::map<tuner::SpecimenId, tuner::CompileReport> early_;  // compiled, but not yet its turn
  Tally tally_;
};

// Checks the open kernels of `lines` at a few sizes each. Returns the number of requests.
size_t verify_all_sizes(Verification& verification, const std::vector<std::string>& lines, const Catalogue& catalogue,
                        const tuner::Apparatus& apparatus, const SampleSize& size) {
  constexpr size_t usual_sizes = 3;
  size_t requests = 0;
  for (const OpenLineKernels& all : all_sizes_of(lines, catalogue, apparatus.target, apparatus.figures)) {
    if (const auto remark = all.remark()) fmt::print(stderr, "kiln: {}\n", printable(*remark));
    for (const SizeToCheck& check :
         sizes_to_check(all, size.per_algorithm ? usual_sizes : size.count, apparatus.target.arch)) {
      verification.verify(check.request, [&] { return check.choices; });
      ++requests;
    }
  }
  return requests;
}

int verify(const VerifyOptions& options) {
  const auto [workload, open_lines] = read_workload_or_lines(options.input);
  const SampleSize size = parse_sample(options.sample);
  const Catalogue catalogue = catalogue_of(options.device.environment());
  checking::CheckOptions how;
  how.seed = options.seed;
  const std::unique_ptr<tuner::Laboratory> laboratory = options.device.laboratory(how, {}, {.run = options.run_limit});
  Verification verification(*laboratory, catalogue, workload.nodes, options.quiet, options.output.json);
  for (const tuner::Job& job : workload.jobs) verification.verify(job.request, size, options.seed);
  size_t requests = workload.jobs.size();
  if (!open_lines.empty())
    requests = verify_all_sizes(verification, open_lines, catalogue, laboratory->apparatus(), size);
  const Tally& tally = verification.tally();
  const int exit_code = tally.failed + tally.unchecked == 0 ? success : failed_check;
  if (options.output.json) {
    print_json({{"device", laboratory->apparatus().device.id()},
                {"agree", tally.passed},
                {"disagree", tally.failed},
                {"unchecked", tally.unchecked},
                {"variants", verification.findings()},
                {"not_covered", not_covered_json(workload.not_covered)}});
    return exit_code;
  }
  const std::string unchecked = tally.unchecked == 0 ? "" : fmt::format("; {} could not be checked", tally.unchecked);
  fmt::print("{} variants of {} requests agree with the reference, {} do not{}\n{}", tally.passed, requests,
             tally.failed, unchecked, not_covered_text(workload.not_covered));
  return exit_code;
}

}  // namespace

void add_verify(Command app, int& exit_code) {
  auto options = std::make_shared<VerifyOptions>();
  const Command command = app.add_command("verify", "check variants against the double-precision reference");
  options->input.add_to(command);
  options->device.add_to(command);
  command.add_option("--sample", options->sample,
                     "variants per request: a number or all (default: one per algorithm); with open "
                     "extents sizes per open kernel (default 3)");
  add_run_limit_to(command, options->run_limit);
  command.add_option("--seed", options->seed, "seed of the inputs and of the sample")
      .check(whole_number(0, std::numeric_limits<int64_t>::max()));
  options->output.add_json_to(command);
  command.add_flag("--quiet", options->quiet, "print only what is wrong, and the sum");
  command.footer(
      "Examples: kiln verify 'conv_forward x=f16:1x64x56x56 w=f16:64x64x3x3 pad=1' --sample 20\n"
      "          kiln verify 'softmax_forward x=f16:?x?'    # open kernels, at sizes that are drawn");
  command.on_chosen([options, &exit_code] { exit_code = verify(*options); });
}

}  // namespace kiln::cli
