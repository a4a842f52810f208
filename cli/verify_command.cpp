// kiln verify: check variants against the reference.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <memory>
#include <optional>

#include "commands.h"
#include "device_choice.h"
#include "input.h"
#include "kiln/base/error.h"
#include "kiln/device/nvrtc.h"
#include "kiln/execution/compile.h"
#include "kiln/execution/target.h"
#include "kiln/reference/fill.h"
#include "kiln/runtime/settings.h"
#include "kiln/tuner/check.h"
#include "words.h"

namespace kiln::cli {
namespace {

struct VerifyOptions {
  Input input;
  DeviceChoice device;
  std::string sample;
  uint64_t seed = 1;
  bool quiet = false;
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

struct Bench {
  std::shared_ptr<const device::ContextHandle> context;
  std::shared_ptr<const device::Nvrtc> nvrtc;
  Catalogue catalogue;
  Target target;
  DeviceFigures figures;
};

// The first legal point of every algorithm, then, if more are asked for, others in a seeded order.
std::vector<Choice> choices_for(const Bench& bench, const Request& request, const SampleSize& size, uint64_t seed) {
  std::vector<Choice> firsts, others;
  for (const Algorithm& algorithm : bench.catalogue.algorithms()) {
    if (algorithm.refusal(request, bench.target)) continue;
    bool first = true;
    algorithm.space().for_each_legal(request, bench.target, [&](const Config& config) {
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

execution::Executable load(const Bench& bench, const Request& request, const Choice& choice,
                           const std::vector<std::string>& operands) {
  const Program program = bench.catalogue.program(request, bench.target, choice);
  return {bench.context, execution::compile(*bench.nvrtc, program, bench.target), operands};
}

struct Tally {
  size_t passed = 0, failed = 0;
};

void verify_choice(const Bench& bench, tuner::Checker& checker, const Request& request, const Choice& choice,
                   bool quiet, Tally& tally) {
  const std::string name = choice.algorithm + " " + choice.config.print();
  std::string failure;
  try {
    const tuner::Verdict verdict = checker.check(load(bench, request, choice, checker.operand_names()));
    if (verdict.passed && !quiet) fmt::print("  ok    {}: {}\n", name, verdict.text);
    if (!verdict.passed) failure = verdict.text;
  } catch (const Error& error) {
    if (error.code() != ErrorCode::compile_failed && error.code() != ErrorCode::unsupported) throw;
    failure = error.what();
  }
  if (failure.empty()) {
    ++tally.passed;
    return;
  }
  ++tally.failed;
  fmt::print("  WRONG {}: {}\n    {}\n", name, failure, request.key());
}

void verify_request(const Bench& bench, const Request& request, const SampleSize& size, const VerifyOptions& options,
                    Tally& tally) {
  if (!options.quiet) fmt::print("{}\n", summary(request));
  tuner::CheckOptions how;
  how.seed = options.seed;
  tuner::Checker checker(bench.context, request, how);
  if (!tuner::is_checked_in_full(request, how)) {
    const Algorithm& trusted = bench.catalogue.trusted(request.operation);
    const auto config = trusted.space().first_legal(request, bench.target);
    const tuner::Verdict verdict =
        checker.trust(load(bench, request, {trusted.name(), config.value()}, checker.operand_names()));
    if (!verdict.passed) {
      ++tally.failed;
      fmt::print("  WRONG {} (trusted): {}\n    {}\n", trusted.name(), verdict.text, request.key());
      return;
    }
  }
  for (const Choice& choice : choices_for(bench, request, size, options.seed)) {
    verify_choice(bench, checker, request, choice, options.quiet, tally);
  }
}

int verify(const VerifyOptions& options) {
  const Workload workload = read_workload(options.input);
  const SampleSize size = parse_sample(options.sample);
  const Environment environment = options.device.environment();
  const auto context = device::ContextHandle::acquire(
      device::Device(device::Driver::open({environment.driver}), options.device.ordinal()));
  const auto nvrtc = device::Nvrtc::open({environment.nvrtc});
  const device::DeviceInfo& info = context->device().info();
  const Bench bench{context, nvrtc, catalogue_of(environment),
                    execution::target_for(info.cc_major, info.cc_minor, *nvrtc), execution::figures_of(info)};
  Tally tally;
  for (const tuner::Job& job : workload.jobs) verify_request(bench, job.request, size, options, tally);
  fmt::print("{} variants of {} requests agree with the reference, {} do not\n", tally.passed, workload.jobs.size(),
             tally.failed);
  return tally.failed == 0 ? success : failed_check;
}

}  // namespace

void add_verify(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<VerifyOptions>();
  CLI::App* command = app.add_subcommand("verify", "check variants against the double-precision reference");
  options->input.add_to(*command);
  options->device.add_to(*command);
  command->add_option("--sample", options->sample,
                      "variants per request: a number or all (default: one per algorithm)");
  command->add_option("--seed", options->seed, "of the inputs and of the sample");
  command->add_flag("--quiet", options->quiet, "print only what is wrong, and the sum");
  command->footer("Example: kiln verify 'conv_forward x=f16:1x64x56x56 w=f16:64x64x3x3 pad=1' --sample 20");
  command->callback([options, &exit_code] { exit_code = verify(*options); });
}

}  // namespace kiln::cli
