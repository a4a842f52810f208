#include "traffic.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <cstdlib>
#include <nlohmann/json.hpp>
#include <variant>
#include <vector>

#include "kiln/base/error.h"
#include "kiln/device/memory.h"
#include "kiln/execution/compile.h"
#include "kiln/execution/executable.h"
#include "kiln/execution/target.h"
#include "kiln/generator/check_values.h"
#include "kiln/generator/operation.h"
#include "kiln/generator/run_values.h"
#include "kiln/reference/fill.h"
#include "kiln/reference/tensor_memory.h"
#include "kiln/templates/catalogue.h"

namespace kiln::bench {
namespace {

constexpr double sector_bytes = 32;

// With what is known of every sector, instead of estimates from a few blocks.
std::shared_ptr<const device::ContextHandle> counting_context(const std::string& driver) {
  setenv("KILN_EMULATOR_COUNTED_BLOCKS", "0", 1);
  return device::ContextHandle::acquire(device::Device(device::Driver::open({driver}), 0));
}

// An export of the library that the driver's entry points are in; null if it has none of that name.
void* find_export(const device::Driver& driver, const char* name) {
  Dl_info place{};
  if (dladdr(reinterpret_cast<void*>(driver.calls().cuInit), &place) == 0) return nullptr;
  void* const library = dlopen(place.dli_fname, RTLD_NOW | RTLD_NOLOAD);
  return library == nullptr ? nullptr : dlsym(library, name);
}

// Which sectors a kernel touches depends on integers and grids alone: indices and positions are random, and targets all
// class 0, because a kernel need not read the rows of those that do not count. Everything else is one small positive
// number.
std::vector<std::byte> contents_of(const Request& request, const Operand& operand) {
  const bool are_places = operand.spec.dtype == DType::i32 ? operand.name != "targets" : operand.name == "grid";
  if (are_places && is_read(request, operand.name))
    return reference::filled(request, operand, reference::Values::uniform, 1);
  constexpr std::byte small{0x38};  // 0.527 as f16, 4.4e-5 as f32 and as bf16
  return std::vector<std::byte>(static_cast<size_t>(reference::byte_span(operand.spec)),
                                operand.name == "targets" ? std::byte{} : small);
}

// Operands and workspace on the device.
class Call {
 public:
  Call(std::shared_ptr<const device::ContextHandle> context, const Request& request, int64_t workspace_bytes)
      : context_(std::move(context)),
        request_(request),
        values_(check_values(request)),
        workspace_(context_, static_cast<size_t>(workspace_bytes)) {
    for (const Operand& operand : request_.operands) {
      buffers_.push_back(device::upload(context_, contents_of(request_, operand)));
      addresses_.push_back(buffers_.back().address());
      names_.push_back(operand.name);
    }
  }

  /// Runs all steps of `program`.
  void run(const execution::CompiledProgram& program) const {
    const execution::Executable executable(context_, program, names_);
    executable.run(nullptr, addresses_, values_, request_.batch(), workspace_.address());
    context_->synchronize();
  }

 private:
  std::shared_ptr<const device::ContextHandle> context_;
  const Request& request_;
  RunValues values_;
  device::Buffer workspace_;
  std::vector<device::Buffer> buffers_;
  std::vector<cuda_abi::CUdeviceptr> addresses_;
  std::vector<std::string> names_;
};

void add_launch(Traffic& traffic, const std::string& kernel, const char* record) {
  const nlohmann::json launch = nlohmann::json::parse(record);
  if (launch.at("kernel") != kernel)
    throw Error(ErrorCode::internal, fmt::format("kernel {} was not launched, but {}", kernel, record));
  const nlohmann::json& counters = launch.at("counters");
  const auto sectors = [&](const char* name) { return sector_bytes * counters.at(name).get<double>(); };
  ++traffic.launches;
  traffic.unique_bytes += sectors("unique_load_sectors") + sectors("unique_store_sectors");
  traffic.requested_bytes += sectors("global_sectors");
}

}  // namespace

TrafficMeter::TrafficMeter(const std::string& driver, const device::NvrtcChoice& nvrtc)
    : context_(counting_context(driver)),
      nvrtc_(device::Nvrtc::open(nvrtc)),
      catalogue_(make_catalogue(embedded_sources())) {
  last_launch_ = reinterpret_cast<LastLaunch*>(find_export(context_->driver(), "kiln_emulator_last_launch_json"));
  if (last_launch_ == nullptr) {
    throw Error(ErrorCode::unsupported, fmt::format("{} does not count sectors", context_->driver().description()),
                "KILN_DRIVER=emulator");
  }
  const device::DeviceInfo& info = context_->device().info();
  target_ = execution::target_for(info.cc_major, info.cc_minor, *nvrtc_);
  figures_ = execution::figures_of(info);
}

Traffic TrafficMeter::measure(const Request& request) const {
  const Choice choice = catalogue_.heuristic(request, target_, figures_);
  execution::CompiledProgram step = execution::compile(*nvrtc_, catalogue_.program(request, target_, choice), target_,
                                                       nullptr, execution::Products::ptx);
  const std::vector<Step> steps = step.program.steps;
  const Call call(context_, request, step.program.workspace_bytes);
  const device::Current current(*context_);  // last_launch_ tells of the current context

  Traffic traffic;
  traffic.algorithm = choice.algorithm;
  traffic.workspace_bytes = step.program.workspace_bytes;
  for (const Step& one : steps) {  // by itself, because the counters are those of the last launch
    step.program.steps = {one};
    call.run(step);
    std::visit(Match{[&](const Launch& launch) { add_launch(traffic, launch.entry, last_launch_()); },
                     [&](const ClearWorkspace& clear) {
                       traffic.unique_bytes += static_cast<double>(clear.bytes);
                       traffic.requested_bytes += static_cast<double>(clear.bytes);
                     }},
               one);
  }
  return traffic;
}

std::string TrafficMeter::description() const {
  return fmt::format("{}, NVRTC {}.{} for {}", context_->device().info().id(), nvrtc_->version().major,
                     nvrtc_->version().minor, target_.arch.name());
}

}  // namespace kiln::bench
