#include "winner_launches.h"

#include <memory>
#include <new>
#include <optional>
#include <string>

#include "json.h"
#include "kiln/base/error.h"
#include "kiln/device/context.h"
#include "kiln/device/nvrtc.h"
#include "kiln/execution/compile.h"
#include "kiln/execution/executable.h"
#include "kiln/execution/target.h"
#include "kiln/runtime/settings.h"
#include "launches.h"

namespace kiln::cli {
namespace {

// Times variants on one device without running them.
class LaunchModel {
 public:
  LaunchModel(const Environment& environment, const device::Device& device)
      : device_(device::ContextHandle::acquire(device)),
        nvrtc_(device::Nvrtc::open({environment.nvrtc})),
        target_(execution::target_for(device.info().cc_major, device.info().cc_minor, *nvrtc_)),
        timer_(device_) {
    if (const auto kept = kernel_store(std::nullopt, environment)) kernels_.emplace(*kept);
  }

  ModelledLaunches launches_of_variant(const Catalogue& catalogue, const Request& request, const Choice& choice) {
    const Program program = catalogue.program(request, target_, choice);
    std::vector<std::string> names;
    for (const Operand& operand : request.operands) names.push_back(operand.name);
    const execution::Executable variant(
        device_, execution::compile(*nvrtc_, program, target_, kernels_ ? &*kernels_ : nullptr), names);
    const auto launches = device::timed_only(device_, [&] {
      return launches_of(timer_, checking::DeviceOperands(device_, request, checking::Placement::as_allocated),
                         checking::Checkable(variant));
    });
    return launches ? ModelledLaunches{bound_text(*launches), launches_text(*launches)} : ModelledLaunches{};
  }

 private:
  std::shared_ptr<const device::ContextHandle> device_;
  std::shared_ptr<const device::Nvrtc> nvrtc_;
  Target target_;
  std::optional<store::FileStore> kernels_;
  tuner::DeviceTimer timer_;
};

}  // namespace

std::vector<ModelledLaunches> launches_of_winners(const DeviceChoice& device, const Catalogue& catalogue,
                                                  const std::vector<tuner::JobResult>& results) {
  const Environment environment = device.environment();
  LaunchModel model(environment, device::Device(device::Driver::open({environment.driver}), device.ordinal()));
  std::vector<ModelledLaunches> modelled;
  for (const tuner::JobResult& result : results) {
    ModelledLaunches& layer = modelled.emplace_back();
    if (!result.best) continue;
    try {
      layer = model.launches_of_variant(catalogue, result.request, result.best->choice);
    } catch (const Error& error) {
      layer = {"what is not known", error.what()};
    } catch (const std::bad_alloc&) {
      layer = {"what is not known", "out of memory on this machine"};
    }
  }
  return modelled;
}

}  // namespace kiln::cli
