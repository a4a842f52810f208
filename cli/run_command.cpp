// kiln run: run layers with what the cache has for them, as an application would.
#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <memory>

#include "commands.h"
#include "device_choice.h"
#include "input.h"
#include "kiln/base/error.h"
#include "kiln/context.h"
#include "kiln/device/context.h"
#include "kiln/device/event.h"
#include "kiln/device/memory.h"
#include "kiln/device/stream.h"
#include "kiln/generator/operation.h"
#include "kiln/reference/fill.h"
#include "kiln/reference/tensor_memory.h"
#include "kiln/reference/tolerance.h"
#include "table.h"
#include "words.h"

namespace kiln::cli {
namespace {

constexpr double full_check_flops = 2e7;  // beyond this the reference would take seconds: sample its outputs
constexpr int64_t sampled_outputs = 200;
constexpr uint64_t seed = 1;

struct RunOptions {
  Input input;
  DeviceChoice device;
  std::string database;
  std::vector<std::string> packs;
  bool check = false;
  int samples = 20;
};

RunValues values_for(const Request& request) {
  RunValues values;
  const auto value = [](Scale scale, float any) {
    return scale == Scale::any ? any : scale == Scale::one ? 1.0f : 0.0f;
  };
  values.alpha = value(request.blend.alpha, 1.25f);
  values.beta = value(request.blend.beta, 0.5f);
  if (request.has(EpilogueStage::clip)) {
    values.clip_lo = -0.5f;
    values.clip_hi = 6.0f;
  }
  if (request.dynamic_batch) values.n = request.batch();
  return values;
}

// A layer's operands on the device, and on the host as they were before it ran.
class LayerRun {
 public:
  LayerRun(std::shared_ptr<const device::ContextHandle> device, const Request& request, const Plan& plan)
      : device_(std::move(device)), request_(request), plan_(plan), values_(values_for(request)) {
    for (const Operand& operand : request_.operands) {
      const bool unread = operand.name == "y" && request_.blend.beta == Scale::zero;
      host_.push_back(unread ? reference::poisoned(operand.spec)
                             : reference::filled(operand.spec, reference::Values::uniform, seed));
      buffers_.push_back(device::upload(device_, host_.back()));
      addresses_.emplace_back(reinterpret_cast<const void*>(buffers_.back().address()));
    }
    workspace_ = device::Buffer(device_, static_cast<size_t>(plan_.workspace_bytes()));
  }

  /// Runs once and compares with the reference; what was wrong, or nothing.
  std::optional<reference::Mismatch> check() {
    enqueue(nullptr);
    device_->synchronize();
    reference::Bindings bindings;
    bindings.alpha = values_.alpha;
    bindings.beta = values_.beta;
    bindings.clip_lo = values_.clip_lo;
    bindings.clip_hi = values_.clip_hi;
    size_t y = 0;
    for (size_t i = 0; i < host_.size(); ++i) {
      bindings.operands[request_.operands[i].name] = host_[i];
      if (request_.operands[i].name == "y") y = i;
    }
    const auto output = device::download<std::byte>(*device_, buffers_[y].address(), host_[y].size());
    if (operation(request_.operation).work(request_).flops <= full_check_flops) {
      return reference::compare(request_, bindings, output);
    }
    const auto coordinates = reference::sample_coordinates(request_.operands[y].spec, sampled_outputs, seed);
    return reference::compare_at(request_, bindings, output, coordinates);
  }

  /// Median device time of `samples` runs in seconds, after a warm-up. Caches are as the last run left them.
  double time(int samples) {
    const device::Stream stream(device_);
    const device::Event start(device_), stop(device_);
    std::vector<double> seconds;
    for (int i = 0; i <= samples; ++i) {
      start.record(stream.raw());
      enqueue(stream.raw());
      stop.record(stream.raw());
      stop.synchronize();
      if (i > 0) seconds.push_back(stop.elapsed_ms(start) * 1e-3);
    }
    std::nth_element(seconds.begin(), seconds.begin() + static_cast<std::ptrdiff_t>(seconds.size() / 2), seconds.end());
    return seconds[seconds.size() / 2];
  }

 private:
  void enqueue(Stream stream) { plan_.run(stream, addresses_, reinterpret_cast<void*>(workspace_.address()), values_); }

  std::shared_ptr<const device::ContextHandle> device_;
  const Request& request_;
  const Plan& plan_;
  RunValues values_;
  std::vector<std::vector<std::byte>> host_;
  std::vector<device::Buffer> buffers_;
  std::vector<Address> addresses_;
  device::Buffer workspace_;
};

ContextOptions context_options(const RunOptions& options) {
  ContextOptions context;
  context.environment = options.device.environment();
  context.device = options.device.ordinal();
  if (!options.database.empty()) context.cache = options.database;
  context.packs = options.packs;
  return context;
}

int run_layers(const RunOptions& options) {
  const Workload workload = read_workload(options.input);
  const ContextOptions context_options_ = context_options(options);
  const auto device = device::ContextHandle::acquire(
      device::Device(device::Driver::open({context_options_.environment->driver}), context_options_.device));
  const bool emulated = device->driver().is_emulated();
  Context context(context_options_);

  std::vector<std::string> headings = {
      "layer", ">count", "variant", emulated ? ">modelled time" : ">measured time", ">of roofline", "choice"};
  if (options.check) headings.push_back("check");
  Table table(std::move(headings));
  int wrong = 0;
  for (const tuner::Job& job : workload.jobs) {
    const Plan plan = context.plan(job.request);
    LayerRun layer(device, job.request, plan);
    std::optional<reference::Mismatch> mismatch;
    if (options.check) mismatch = layer.check();
    const double seconds = layer.time(emulated ? 1 : options.samples);
    std::vector<std::string> row = {summary(job.request),
                                    std::to_string(job.count),
                                    plan.variant(),
                                    time_text(seconds),
                                    percent_text(context.explain(job.request).roofline_seconds / seconds),
                                    plan.source()};
    if (options.check) row.push_back(mismatch ? "WRONG: " + mismatch->text() : "ok");
    table.add(std::move(row));
    wrong += mismatch.has_value();
  }
  fmt::print("{}\n\n{}", context.device_description(), table.print());
  if (options.check)
    fmt::print("\n{} layers agree with the reference, {} do not\n", workload.jobs.size() - static_cast<size_t>(wrong),
               wrong);
  return wrong == 0 ? success : failed_check;
}

}  // namespace

void add_run(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<RunOptions>();
  CLI::App* command = app.add_subcommand("run", "run layers with the variants that the cache has for them");
  options->input.add_to(*command);
  options->device.add_to(*command);
  command->add_option("--db", options->database, "tuning database (default: KILN_CACHE, else the user's cache folder)");
  command->add_option("--pack", options->packs, "packs to use beside the database");
  command->add_flag("--check", options->check, "compare every layer's output with the double-precision reference");
  command->add_option("--samples", options->samples, "timed runs on a real device; the median is shown (default 20)")
      ->check(CLI::Range(1, 10000));
  command->footer("Example: kiln run --check examples/models/resnet18.onnx");
  command->callback([options, &exit_code] { exit_code = run_layers(*options); });
}

}  // namespace kiln::cli
