// Host time of a run of a Model, as one CUDA graph and kernel by kernel.
//
// Method: the emulator's driver, whose launches of kernels and graphs are counted and do nothing, so that what is
// measured is Kiln's own time and the calls that it makes. Rounds of both ways alternate in one run; the medians of 15
// rounds are printed.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <exception>
#include <string>
#include <utility>
#include <vector>

#include "driver_watch.h"
#include "kiln/context.h"
#include "kiln/generator/dtype.h"
#include "kiln/memory.h"
#include "kiln/model.h"

namespace {

using kiln::testing_support::DriverWatch;

constexpr int runs = 1000;
constexpr int rounds = 15;

/// The tensors of a model, one behind the other.
class Tensors {
 public:
  Tensors(kiln::Context& context, const kiln::Model& model) {
    for (const kiln::ModelTensor& tensor : model.inputs()) inputs_.push_back(over(context, tensor));
    for (const kiln::ModelTensor& tensor : model.outputs()) outputs_.push_back(over(context, tensor));
  }
  void run(kiln::Model& model) const { model.run(inputs_, outputs_); }

 private:
  kiln::NamedTensor over(kiln::Context& context, const kiln::ModelTensor& tensor) {
    auto bytes = static_cast<size_t>(size_of(tensor.dtype));
    for (const int64_t extent : tensor.extents) bytes *= static_cast<size_t>(extent);
    const std::vector<int64_t> extents = tensor.extents.empty() ? std::vector<int64_t>{1} : tensor.extents;
    memory_.emplace_back(context, std::max<size_t>(bytes, 1));
    return {tensor.name, kiln::Tensor(memory_.back().data(), tensor.dtype, extents, kiln::contiguous)};
  }

  std::vector<kiln::DeviceMemory> memory_;
  std::vector<kiln::NamedTensor> inputs_, outputs_;
};

/// A model loaded in one of the ways, with what its runs took.
struct Way {
  Way(kiln::Context& context, const std::string& path, bool use_graph)
      : model(context, path, {.use_graph = use_graph}), tensors(context, model) {}

  /// Measures one run, in seconds.
  double measure() {
    const auto begin = std::chrono::steady_clock::now();
    for (int i = 0; i < runs; ++i) tensors.run(model);
    const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - begin;
    return taken.count() / runs;
  }

  kiln::Model model;
  Tensors tensors;
  std::vector<double> seconds;
};

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + rounds / 2, values.end());
  return values[rounds / 2];
}

void print(const char* name, Way& way, DriverWatch& watch) {
  const int kernels = watch.kernels, graphs = watch.graphs;
  way.tensors.run(way.model);
  fmt::print("{:<18} {:>8} {:>8} {:>14.2f}\n", name, watch.kernels - kernels, watch.graphs - graphs,
             median(way.seconds) * 1e6);
}

void compare(const std::string& path) {
  kiln::ContextOptions options;
  options.environment = kiln::Environment::read();
  options.environment->driver = KILN_WATCHED_DRIVER;
  options.cache = "off";
  kiln::Context context(options);
  DriverWatch& watch = kiln::testing_support::watch_of(KILN_WATCHED_DRIVER);
  Way plain(context, path, false), graph(context, path, true);
  watch.idle = true;
  for (Way* const way : {&plain, &graph}) (void)way->measure();  // makes the graph
  for (int round = 0; round < rounds; ++round) {
    for (Way* const way : {&plain, &graph}) way->seconds.push_back(way->measure());
  }
  fmt::print("{}, batch {}: each run, on a driver that does nothing\n", path, graph.model.batch());
  fmt::print("{:<18} {:>8} {:>8} {:>14}\n", "", "kernels", "graphs", "host time, us");
  print("kernel by kernel", plain, watch);
  print("one CUDA graph", graph, watch);
  fmt::print("ratio of host times: {:.2f}\n", median(graph.seconds) / median(plain.seconds));
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 2) {
    fmt::print(stderr, "usage: bench_model_run MODEL.onnx\n");
    return 2;
  }
  try {
    compare(arguments[1]);
    return 0;
  } catch (const std::exception& error) {
    fmt::print(stderr, "bench_model_run: {}\n", error.what());
    return 1;
  }
}
