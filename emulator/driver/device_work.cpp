#include "device_work.h"

#include <mutex>

#include "driver.h"

namespace kiln::emulator {

void execute(Driver& driver, Context& context, Track& track, const Work& work) {
  const std::lock_guard execution(context.execution());
  context.require_usable();  // another thread's launch may have broken it meanwhile
  if (const auto* kernel = std::get_if<KernelWork>(&work)) execute_kernel(driver, context, track, *kernel);
  if (const auto* copy = std::get_if<CopyWork>(&work)) execute_copy(context, track, *copy);
  if (const auto* fill = std::get_if<FillWork>(&work)) execute_fill(context, track, *fill);
}

}  // namespace kiln::emulator
