// The launches of a layer on an emulated device, and what its clock tells of them.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "json.h"
#include "kiln/checking/device_operands.h"
#include "kiln/context.h"
#include "kiln/device/context.h"
#include "kiln/tuner/device_timer.h"

namespace kiln::cli {

/// A plan as the checker and the timer run it. It has to outlive what is returned.
checking::Checkable checkable(const Plan& plan);

/// The operands of a request on a device, with the contents that timed runs have.
checking::DeviceOperands filled_operands(const std::shared_ptr<const device::ContextHandle>& device,
                                         const Request& request);

/// Throws Error(invalid_argument) for a real device, which has no clock that tells what bounds a launch.
void require_modelled_times(const device::DeviceInfo& device);

/// Result of `measure` for operands of a request. Where nothing has to be run to know how long it takes, the operands
/// are empty (device::timed_only()); else they are filled_operands().
template <class Measure>
auto with_operands(const std::shared_ptr<const device::ContextHandle>& device, const Request& request,
                   const Measure& measure) {
  const auto of_empty = [&] {
    return measure(checking::DeviceOperands(device, request, checking::Placement::as_allocated));
  };
  if (auto measured = device::timed_only(device, of_empty)) return *std::move(measured);
  return measure(filled_operands(device, request));
}

inline constexpr uint64_t traced_instructions = 20'000;

/// Events of one SM in a launch.
struct LaunchTrace {
  std::string kernel;
  uint64_t instructions = 0;  ///< Instructions that are recorded.
  bool is_whole = false;      ///< All that were replayed.
  std::string events;         ///< Events in the Trace Event Format, with commas between.
};

/// Runs the variant once, or times it alone, and returns what the emulated device tells of each launch, as `kiln run
/// --json` prints it (docs/command-line.md). Empty on a real device. With `traces`, at most `traced_instructions` of
/// each launch stand there, as far as machine code tells the time.
Json launches_of(tuner::DeviceTimer& timer, const checking::DeviceOperands& operands,
                 const checking::Checkable& variant, std::vector<LaunchTrace>* traces = nullptr);

/// The file that viewers of traces open.
std::string trace_file(const std::vector<LaunchTrace>& traces, const std::string& request);

/// Reasons why machine code told no time, one for each launch of which that is so.
std::vector<std::string> not_by_machine_code(const Json& launches);

/// Bound of the launch that takes longest, and its part of the time if there are several; `-` if there is none.
std::string bound_text(const Json& launches);

/// All that is told of each launch, in some lines each. Ends with a line feed.
std::string launches_text(const Json& launches);

}  // namespace kiln::cli
