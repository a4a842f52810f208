// Pieces of device work: what a stream executes at once, and what a graph keeps for later.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <variant>
#include <vector>

#include "context.h"
#include "machine/machine.h"
#include "module.h"

namespace kiln::emulator {

class Driver;

/// A kernel launch that has been validated, with the values of its parameters.
struct KernelWork {
  std::shared_ptr<const Function> function;
  Dim3 grid, block;
  uint32_t dynamic_shared_bytes = 0;
  bool cooperative = false;           ///< its blocks may wait for each other
  std::vector<std::byte> parameters;  ///< laid out as KernelInfo::parameters says
};

struct CopyWork {
  struct Side {
    uint64_t address = 0;
    bool device = false;  ///< must be valid on the device
  };
  std::string_view call;  ///< for messages
  Side destination, source;
  uint64_t bytes = 0;
};

struct FillWork {
  std::string_view call;  ///< for messages
  uint64_t address = 0;
  uint32_t value = 0;          ///< the element in its low bytes
  uint32_t element_bytes = 1;  ///< 1, 2 or 4
  uint64_t count = 0;          ///< elements
};

using Work = std::variant<KernelWork, CopyWork, FillWork>;

/// Executes `work` to its end, one piece at a time per context, and places its modelled time on `track`. Fails the call
/// when an address of a copy or fill is not valid. A fault of a kernel breaks the context; the call succeeds then, as
/// an asynchronous one does on hardware.
void execute(Driver& driver, Context& context, Track& track, const Work& work);

/// Execution of each kind, under the context's execution lock; see execute().
void execute_kernel(Driver& driver, Context& context, Track& track, const KernelWork& work);
void execute_copy(Context& context, Track& track, const CopyWork& copy);
void execute_fill(Context& context, Track& track, const FillWork& fill);

}  // namespace kiln::emulator
