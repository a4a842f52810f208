// Open kernels beside exact ones: how many of them serve a class of layers, and how much slower they are.
//
//   bench_open_kernels FILE [time]      FILE: classes as bench/open_kernels/sweep.py prints them
//
// For each request the best open kernel by its estimate stands against the best exact one by its estimate: what a first
// call gets, and what later calls get. A line for each class: its requests, those that no open kernel serves, the
// distinct sources that serve the others, and the ratio of the two times: its geometric mean and the worst. The times
// are estimates; with `time` those of the device (on the emulated one, of its clock).
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
#include "kiln/checking/device_operands.h"
#include "kiln/device/context.h"
#include "kiln/execution/bundle.h"
#include "kiln/execution/compile.h"
#include "kiln/execution/executable.h"
#include "kiln/generator/catalogue.h"
#include "kiln/tuner/device_timer.h"
#include "place.h"

namespace kiln::bench {
namespace {

class Device {
 public:
  explicit Device(const Place& place)
      : place_(place), context_(device::ContextHandle::acquire(place.device)), timer_(context_) {}

  // Seconds; nothing where the device tells no time.
  std::optional<double> time(const Request& request, const Choice& choice) {
    std::vector<std::string> names;
    for (const Operand& operand : request.operands) names.push_back(operand.name);
    const Program program = place_.catalogue.program(request, place_.target, choice);
    const auto compiled = execution::compile(*place_.nvrtc, program, place_.target);
    const execution::Executable variant(context_, compiled, names);
    const checking::DeviceOperands operands(context_, request, checking::Placement::as_allocated);
    const auto samples =
        device::timed_only(context_, [&] { return timer_.time(operands, variant, 1, tuner::L2::cold); });
    return samples ? std::optional(samples->front()) : std::nullopt;
  }

 private:
  const Place& place_;
  std::shared_ptr<const device::ContextHandle> context_;
  tuner::DeviceTimer timer_;
};

struct Class {
  std::string name{};
  int requests = 0, not_served = 0, timed = 0;
  std::set<std::string> sources{};
  double logarithms = 0, worst = 0;

  void print() const {
    if (requests == 0) return;
    fmt::print("{:48} {:5} {:5} {:5} {:8.2f} {:8.2f}\n", name, requests, not_served, sources.size(),
               std::exp(logarithms / std::max(1, timed)), worst);
    std::fflush(stdout);
  }
};

void add(Class& one, const std::string& line, const Place& place, Device* device) {
  const Request request = Request::parse(line);
  Variants variants = place.catalogue.on(request, place.target);
  const Candidates open = variants.open_candidates(place.figures), exact = variants.candidates(place.figures);
  ++one.requests;
  if (open.ranked.empty()) {
    ++one.not_served;
    fmt::print("  none for {}\n", line);
    return;
  }
  const Candidate &best = open.ranked.front(), &usual = *exact.best_guess();
  for (const Source& source : variants.program(best.choice).sources) one.sources.insert(execution::code_digest(source));
  std::optional<double> seconds = best.estimate.seconds, usual_seconds = usual.estimate.seconds;
  if (device != nullptr) {
    seconds = device->time(request, best.choice);
    usual_seconds = device->time(request, usual.choice);
  }
  if (!seconds || !usual_seconds) return;
  const double ratio = *seconds / *usual_seconds;
  ++one.timed;
  one.logarithms += std::log(ratio);
  one.worst = std::max(one.worst, ratio);
  if (ratio > 2) {
    fmt::print("  {:.2f} ({:.1f} us): {}: {} {} for {} {}\n", ratio, *usual_seconds * 1e6, line, best.choice.algorithm,
               best.choice.config.print(), usual.choice.algorithm, usual.choice.config.print());
  }
}

int compare(const std::string& path, bool timed) {
  const Place place;
  std::optional<Device> device;
  if (timed) device.emplace(place);
  std::ifstream file(path);
  if (!file) throw Error(ErrorCode::io_error, fmt::format("{} cannot be read", path));
  fmt::print("{:48} {:>5} {:>5} {:>5} {:>8} {:>8}\n", "class", "sizes", "none", "code", "mean", "worst");
  Class one, all{.name = "all"};
  const auto end_class = [&] {
    one.print();
    all.requests += one.requests;
    all.not_served += one.not_served;
    all.timed += one.timed;
    all.logarithms += one.logarithms;
    all.worst = std::max(all.worst, one.worst);
    all.sources.merge(one.sources);
  };
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("# ")) {
      end_class();
      one = {.name = line.substr(2)};
    } else if (!line.empty()) {
      add(one, line, place, device ? &*device : nullptr);
    }
  }
  end_class();
  all.print();
  return 0;
}

}  // namespace
}  // namespace kiln::bench

int main(int argc, char** argv) {
  if (argc < 2) {
    fmt::print(stderr, "usage: bench_open_kernels FILE [time]\n");
    return 2;
  }
  try {
    return kiln::bench::compare(argv[1], argc > 2 && argv[2] == std::string_view("time"));
  } catch (const std::exception& error) {
    fmt::print(stderr, "bench_open_kernels: {}\n", error.what());
    return 1;
  }
}
