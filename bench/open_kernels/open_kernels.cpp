// Open kernels beside exact ones: how many of them serve a class of layers, and how much slower they are.
//
//   bench_open_kernels FILE [time|check]      FILE: classes as bench/open_kernels/sweep.py prints them
//
// For each request the best open kernel by its estimate stands against the best exact one by its estimate: what a first
// call gets, and what later calls get. A line for each class: its requests, those that no open kernel serves, the
// distinct sources that serve the others, and the ratio of the two times: its geometric mean and the worst. The times
// are estimates; with `time` those of the emulated device's clock, without a run. `check` runs both kernels as tuning
// checks candidates, and says which are wrong; one that is makes the status 1. Its times are those of the clock, or on
// a GPU the medians of nine runs from a cold L2. Kernels are compiled on all threads before the first is timed, or come
// from the store of compiled kernels.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "kiln/base/error.h"
#include "kiln/base/parallel.h"
#include "kiln/checking/check.h"
#include "kiln/checking/device_operands.h"
#include "kiln/checking/trusted_program.h"
#include "kiln/device/context.h"
#include "kiln/execution/bundle.h"
#include "kiln/execution/compile.h"
#include "kiln/execution/executable.h"
#include "kiln/generator/catalogue.h"
#include "kiln/runtime/settings.h"
#include "kiln/store/file_store.h"
#include "kiln/tuner/device_timer.h"
#include "kiln/tuner/timing.h"
#include "place.h"

namespace kiln::bench {
namespace {

enum class Mode { estimate, time, check };

// A layer, and what is compared.
struct Layer {
  Request request;
  std::optional<Candidate> open{};   // nothing where no open kernel serves it
  std::optional<Candidate> exact{};  // there where `open` is
  std::set<std::string> sources{};   // digests of the open kernel's
  std::optional<execution::CompiledProgram> open_program{}, exact_program{}, trusted{};
};

Layer layer_of(const Place& place, store::FileStore* kernels, const std::string& line, Mode mode) {
  Layer layer{.request = Request::parse(line)};
  Variants variants = place.catalogue.on(layer.request, place.target);
  const Candidates open = variants.open_candidates(place.figures);
  if (open.ranked.empty()) return layer;
  layer.open = open.ranked.front();
  layer.exact = *variants.candidates(place.figures).best_guess();
  const Program program = variants.program(layer.open->choice);
  for (const Source& source : program.sources) layer.sources.insert(execution::code_digest(source));
  if (mode == Mode::estimate) return layer;
  const auto compiled = [&](const Program& what) {
    return execution::compile(*place.nvrtc, what, place.target, kernels);
  };
  layer.open_program = compiled(program);
  layer.exact_program = compiled(variants.program(layer.exact->choice));
  if (mode == Mode::check && checking::needs_trusted(layer.request, {})) {
    layer.trusted = compiled(checking::trusted_program(place.catalogue, layer.request, place.target));
  }
  return layer;
}

class Device {
 public:
  explicit Device(const Place& place) : context_(device::ContextHandle::acquire(place.device)), timer_(context_) {}

  struct Times {
    double open = 0, exact = 0;  // seconds
  };

  // Nothing where the device tells no time.
  std::optional<Times> time(const Layer& layer) {
    const checking::DeviceOperands operands(context_, layer.request, checking::Placement::as_allocated);
    return times(operands, loaded(layer.request, *layer.open_program), loaded(layer.request, *layer.exact_program));
  }

  // As time(), behind the checks of both; adds what is wrong to `wrong`.
  std::optional<Times> check_and_time(const Layer& layer, std::vector<std::string>& wrong) {
    checking::Checker checker(context_, layer.request, {});
    const auto look = [&](const std::string& name, const checking::Verdict& verdict) {
      if (!verdict.passed) wrong.push_back(name + ": " + verdict.text);
      return verdict.passed;
    };
    if (layer.trusted) {
      const std::vector<std::string> names = checking::trusted_operand_names(layer.request);
      if (!look("the trusted kernel", checker.trust({context_, *layer.trusted, names}))) return std::nullopt;
    }
    const execution::Executable open = loaded(layer.request, *layer.open_program);
    const execution::Executable exact = loaded(layer.request, *layer.exact_program);
    look("open " + layer.open->choice.algorithm, checker.check(open));
    look("exact " + layer.exact->choice.algorithm, checker.check(exact));
    return times(checker.timed_operands(), open, exact);
  }

 private:
  execution::Executable loaded(const Request& request, const execution::CompiledProgram& program) const {
    std::vector<std::string> names;
    for (const Operand& operand : request.operands) names.push_back(operand.name);
    return {context_, program, names};
  }

  std::optional<Times> times(const checking::DeviceOperands& operands, const execution::Executable& open,
                             const execution::Executable& exact) {
    const bool emulated = context_->driver().is_emulated();
    const auto median = [&](const execution::Executable& one) {
      return tuner::summarise(timer_.time(operands, one, emulated ? 1 : 9, tuner::L2::cold)).median;
    };
    const auto both = [&] { return Times{median(open), median(exact)}; };
    return emulated ? device::timed_only(context_, both) : both();
  }

  std::shared_ptr<const device::ContextHandle> context_;
  tuner::DeviceTimer timer_;
};

struct Class {
  std::string name{};
  size_t requests = 0, not_served = 0, timed = 0, wrong = 0;
  std::set<std::string> sources{};
  double logarithms = 0, worst = 0;

  void print() const {
    if (requests == 0) return;
    fmt::print("{:48} {:5} {:5} {:5} ", name, requests, not_served, sources.size());
    if (timed == 0) {
      fmt::print("{:>8} {:>8}\n", "-", "-");
    } else {
      fmt::print("{:8.2f} {:8.2f}\n", std::exp(logarithms / static_cast<double>(timed)), worst);
    }
    std::fflush(stdout);
  }

  void add(const Class& other) {
    requests += other.requests;
    not_served += other.not_served;
    timed += other.timed;
    wrong += other.wrong;
    sources.insert(other.sources.begin(), other.sources.end());
    logarithms += other.logarithms;
    worst = std::max(worst, other.worst);
  }
};

Class of_layer(const std::string& line, const Layer& layer, Device* device, Mode mode) {
  Class one{.requests = 1};
  if (!layer.open) {
    fmt::print("  none for {}\n", line);
    one.not_served = 1;
    return one;
  }
  one.sources = layer.sources;
  std::optional<Device::Times> times = Device::Times{layer.open->estimate.seconds, layer.exact->estimate.seconds};
  if (mode == Mode::time) times = device->time(layer);
  std::vector<std::string> wrong;
  if (mode == Mode::check) times = device->check_and_time(layer, wrong);
  for (const std::string& text : wrong) fmt::print("  WRONG: {}: {}\n", line, text);
  one.wrong = wrong.size();
  if (!times) return one;
  const double ratio = times->open / times->exact;
  one.timed = 1;
  one.logarithms = std::log(ratio);
  one.worst = ratio;
  if (ratio > 2) {
    const Choice &best = layer.open->choice, &usual = layer.exact->choice;
    fmt::print("  {:.2f} ({:.1f} us): {}: {} {} for {} {}\n", ratio, times->exact * 1e6, line, best.algorithm,
               best.config.print(), usual.algorithm, usual.config.print());
  }
  return one;
}

int compare(const std::string& path, Mode mode) {
  const Place place;
  std::optional<Device> device;
  if (mode != Mode::estimate) device.emplace(place);
  if (mode == Mode::time && !place.device.driver()->is_emulated()) {
    throw Error(ErrorCode::invalid_argument, "time asks the emulated device's clock: check takes times on a GPU");
  }
  std::ifstream file(path);
  if (!file) throw Error(ErrorCode::io_error, fmt::format("{} cannot be read", path));
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) {
    if (!line.empty()) lines.push_back(line);
  }
  std::optional<store::FileStore> kernels;
  if (const auto options = kernel_store(std::nullopt, place.environment)) kernels.emplace(*options);
  std::vector<std::optional<Layer>> layers(lines.size());
  for_each_index(lines.size(), [&](size_t i) {
    if (!lines[i].starts_with("# ")) layers[i] = layer_of(place, kernels ? &*kernels : nullptr, lines[i], mode);
  });
  fmt::print("{:48} {:>5} {:>5} {:>5} {:>8} {:>8}\n", "class", "sizes", "none", "code", "mean", "worst");
  Class one, all{.name = "all"};
  for (size_t i = 0; i < lines.size(); ++i) {
    if (layers[i]) {
      one.add(of_layer(lines[i], *layers[i], device ? &*device : nullptr, mode));
      continue;
    }
    one.print();
    all.add(one);
    one = {.name = lines[i].substr(2)};
  }
  one.print();
  all.add(one);
  all.print();
  if (mode == Mode::check) fmt::print("{} kernels are wrong\n", all.wrong);
  return all.wrong == 0 ? 0 : 1;
}

std::optional<Mode> mode_of(int argc, char** argv) {
  if (argc == 2) return Mode::estimate;
  const std::string_view word = argc == 3 ? argv[2] : "";
  if (word == "time") return Mode::time;
  if (word == "check") return Mode::check;
  return std::nullopt;
}

}  // namespace
}  // namespace kiln::bench

int main(int argc, char** argv) {
  const auto mode = kiln::bench::mode_of(argc, argv);
  if (!mode) {
    fmt::print(stderr, "usage: bench_open_kernels FILE [time|check]\n");
    return 2;
  }
  try {
    return kiln::bench::compare(argv[1], *mode);
  } catch (const std::exception& error) {
    fmt::print(stderr, "bench_open_kernels: {}\n", error.what());
    return 1;
  }
}
