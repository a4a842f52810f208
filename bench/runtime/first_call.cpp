// Host time of a first call: from a request to a loaded plan, with every compiled kernel in the store.
//
// Method: a driver of entry points that return success at once, NVRTC's kernels in a store that a first pass fills.
// Then PlanMaker::make(), which a call without a plan ends in, for each request by turns, once without records and once
// with 16 records of each request; medians of 9 rounds. "two threads" is what Context::prepare() does with all
// requests.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <filesystem>
#include <numeric>
#include <string>
#include <vector>

#include "kiln/base/parallel.h"
#include "kiln/cache/database.h"
#include "kiln/device/context.h"
#include "kiln/execution/target.h"
#include "kiln/generator/catalogue.h"
#include "null_driver.h"
#include "plan_maker.h"

namespace {

constexpr size_t rounds = 9;
constexpr size_t records_of_a_request = 16;

// The convolutions of ResNet-50 that differ, at batch 32: channels, image, filters, filter extent, stride.
constexpr std::array<std::array<int, 5>, 23> resnet50 = {{
    {3, 224, 64, 7, 2},     {64, 56, 64, 1, 1},   {64, 56, 64, 3, 1},    {64, 56, 256, 1, 1},   {256, 56, 64, 1, 1},
    {256, 56, 128, 1, 1},   {128, 56, 128, 3, 2}, {128, 28, 512, 1, 1},  {256, 56, 512, 1, 2},  {512, 28, 128, 1, 1},
    {128, 28, 128, 3, 1},   {512, 28, 256, 1, 1}, {256, 28, 256, 3, 2},  {256, 14, 1024, 1, 1}, {512, 28, 1024, 1, 2},
    {1024, 14, 256, 1, 1},  {256, 14, 256, 3, 1}, {1024, 14, 512, 1, 1}, {512, 14, 512, 3, 2},  {512, 7, 2048, 1, 1},
    {1024, 14, 2048, 1, 2}, {2048, 7, 512, 1, 1}, {512, 7, 512, 3, 1},
}};

std::vector<kiln::Request> requests() {
  std::vector<kiln::Request> result;
  for (const auto& [c, h, k, r, stride] : resnet50) {
    const int pad = r / 2, p = (h + 2 * pad - r) / stride + 1;
    const std::string x = fmt::format("f32:32x{}x{}x{}", c, h, h), w = fmt::format("f32:{}x{}x{}x{}", k, c, r, r),
                      y = fmt::format("f32:32x{}x{}x{}", k, p, p),
                      window = fmt::format("pad={} stride={}", pad, stride);
    result.push_back(kiln::Request::parse(fmt::format("conv_forward x={} w={} y={} {}", x, w, y, window)));
    result.push_back(kiln::Request::parse(fmt::format("conv_backward_data dy={} w={} dx={} {}", y, w, x, window)));
    result.push_back(kiln::Request::parse(fmt::format("conv_backward_filter x={} dy={} dw={} {}", x, y, w, window)));
  }
  return result;
}

double milliseconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

// The best candidates of each request by estimate, as if they had been timed at that.
void add_records(kiln::cache::Database& database, const kiln::Catalogue& catalogue,
                 const kiln::device::DeviceInfo& info, const std::vector<kiln::Request>& all) {
  const kiln::Target target{kiln::Arch::of(info.cc_major, info.cc_minor), 13, 0};
  database.put_device({info.id(), info.name, info.cc_major, info.cc_minor, info.sms, info.emulated});
  std::vector<kiln::cache::Record> records;
  for (const kiln::Request& request : all) {
    const auto ranked = catalogue.candidates(request, target, kiln::execution::figures_of(info)).ranked;
    for (size_t i = 0; i < std::min(ranked.size(), records_of_a_request); ++i) {
      const kiln::Choice& choice = ranked[i].choice;
      const kiln::Program program = catalogue.program(request, target, choice);
      kiln::cache::Record record;
      record.request = request.key();
      record.device = info.id();
      record.algorithm = choice.algorithm;
      record.algorithm_digest = catalogue.digest(choice.algorithm).value();
      record.config = choice.config.print();
      record.outcome = "timed";
      record.seconds = ranked[i].estimate.seconds;
      record.workspace_bytes = program.workspace_bytes;
      record.deterministic = program.deterministic;
      record.session = "bench";
      records.push_back(std::move(record));
    }
  }
  database.insert(records);
}

void measure(const char* name, kiln::PlanMaker& maker, const std::vector<kiln::Request>& all) {
  std::vector<double> each;
  std::vector<double> on_two_threads;
  for (const kiln::Request& request : all) {
    std::vector<double> times;
    for (size_t round = 0; round < rounds; ++round) {
      const auto start = std::chrono::steady_clock::now();
      (void)maker.make(request);
      times.push_back(milliseconds_since(start));
    }
    each.push_back(median(times));
  }
  for (size_t round = 0; round < rounds; ++round) {
    const auto start = std::chrono::steady_clock::now();
    kiln::for_each_index(all.size(), [&](size_t i) { (void)maker.make(all[i]); });
    on_two_threads.push_back(milliseconds_since(start));
  }
  fmt::print(
      "{:<22} one request: median {:.2f} ms, slowest {:.2f} ms; all {} requests: {:.0f} ms one by one, {:.0f} ms "
      "on all threads\n",
      name, median(each), *std::max_element(each.begin(), each.end()), all.size(),
      std::accumulate(each.begin(), each.end(), 0.0), median(on_two_threads));
}

}  // namespace

int main() {
  const auto context = kiln::device::ContextHandle::acquire(kiln::device::Device(kiln::null_driver(), 0));
  const std::filesystem::path folder = std::filesystem::temp_directory_path() / "kiln_first_call";
  kiln::ContextOptions options;
  options.kernel_store = folder.string();
  const auto say = [](const std::string& message) { fmt::print(stderr, "{}\n", message); };
  const std::vector<kiln::Request> all = requests();

  kiln::PlanMaker untuned(options, kiln::Environment(), context, say);
  fmt::print("kernels by NVRTC, those that {} lacks\n", folder.string());
  kiln::for_each_index(all.size(), [&](size_t i) { (void)untuned.make(all[i]); });
  measure("by estimates", untuned, all);

  kiln::cache::Database database = kiln::cache::Database::in_memory();
  add_records(database, untuned.catalogue(), context->device().info(), all);
  kiln::PlanMaker tuned(options, kiln::Environment(), context, say);
  tuned.take_from(database);
  measure("with 16 records each", tuned, all);
}
