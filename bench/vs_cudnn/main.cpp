// bench_vs_cudnn: Kiln against cuDNN 9 on the layers of a requests file. docs/gpu.md has the method.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>

#include "comparison.h"
#include "kiln/version.h"
#include "results.h"

namespace kiln::bench {
namespace {

struct Options {
  std::string requests, out = "vs_cudnn.jsonl", database, cudnn, table;
  double minutes = 8;
  int device = 0;
  unsigned threads = 0;
};

std::vector<RequestLine> read_requests(const std::string& path) {
  std::ifstream stream(path, std::ios::binary);
  if (!stream) throw Error(ErrorCode::io_error, fmt::format("cannot read {}", path));
  return parse_requests(std::string((std::istreambuf_iterator<char>(stream)), {}));
}

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

std::vector<std::string> keys_of(const std::string& requests) {
  std::vector<std::string> keys;
  for (const RequestLine& line : read_requests(requests)) keys.push_back(line.request.key());
  return keys;
}

// Prints what earlier runs have left; needs no device.
int print_tables(const Options& options) {
  const std::vector<std::string> keys = keys_of(options.requests);
  for (const Conditions& conditions : conditions_in(options.table)) {
    fmt::print("{}\ndriver {}, cuDNN {}, Kiln {}\n\n{}", conditions.device, conditions.driver, conditions.cudnn,
               conditions.kiln, print_table(ResultFile(options.table, conditions), keys));
  }
  return 0;
}

int compare(const Options& options) {
  // Belt and braces: engines that use TF32 are left out by their notes as well.
  setenv("NVIDIA_TF32_OVERRIDE", "0", 1);
  const double end = now() + 60 * options.minutes;
  const std::vector<std::string> keys = keys_of(options.requests);
  const auto library = CudnnLibrary::open(options.cudnn.empty() ? std::nullopt : std::optional(options.cudnn));
  ContextOptions context_options;
  context_options.environment = Environment::read();
  context_options.device = options.device;
  if (!options.database.empty()) context_options.cache = options.database;
  const auto device = device::ContextHandle::acquire(
      device::Device(device::Driver::open({context_options.environment->driver}), options.device));
  const device::Current current(*device);  // cuDNN works in the context that is current
  Context kiln(context_options);
  const device::Stream stream(device);
  const CudnnHandle cudnn(library, stream.raw());
  ComparisonOptions comparison_options;
  comparison_options.threads = options.threads;
  Comparison comparison(kiln, device, stream, cudnn, comparison_options);

  const Conditions conditions{kiln.device_id(), device::cuda_version_text(device->driver().version()),
                              library->version(), std::string(version())};
  ResultFile results(options.out, conditions);
  for (size_t i = 0; i < keys.size(); ++i) {
    if (results.find(keys[i]) != nullptr) continue;
    const double left = end - now();
    if (left <= 0) break;
    fmt::print(stderr, "{}/{}: {}\n", i + 1, keys.size(), keys[i]);
    results.add(comparison.run(Request::parse(keys[i]), left / static_cast<double>(keys.size() - i)));
  }
  fmt::print("{}\ncuDNN {} ({}), Kiln {}; times are {}\n\n{}", kiln.device_id(), library->version(), library->path(),
             version(), device->driver().is_emulated() ? "modelled" : "measured", print_table(results, keys));
  return 0;
}

int run(int argc, char** argv) {
  CLI::App app(
      "Kiln against cuDNN 9: every engine configuration of cuDNN's heuristics, the best of them in pairs with "
      "Kiln's choice");
  Options options;
  app.add_option("requests", options.requests, "requests file")->required();
  app.add_option("--db", options.database, "tuning database of Kiln");
  app.add_option("--cudnn", options.cudnn, "libcudnn.so.9 or its folder (default: the loader's path)");
  app.add_option("--out", options.out, "raw results, one JSON object a line; rows that are there are not run again");
  app.add_option("--minutes", options.minutes, "most time (default 8)")->check(CLI::PositiveNumber);
  app.add_option("--device", options.device, "ordinal of the device");
  app.add_option("--table", options.table, "only print the tables of such a file, without a device")
      ->check(CLI::ExistingFile);
  app.add_option("--threads", options.threads,
                 "threads that build cuDNN's plans (default: as many as the machine has)");
  try {
    app.parse(argc, argv);
    return options.table.empty() ? compare(options) : print_tables(options);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  } catch (const Error& error) {
    fmt::print(stderr, "bench_vs_cudnn: {}\n", error.what());
    return error.code() == ErrorCode::missing_library ? 3 : 1;
  }
}

}  // namespace
}  // namespace kiln::bench

int main(int argc, char** argv) {
  return kiln::bench::run(argc, argv);
}
