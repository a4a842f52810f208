// Kiln and kernels of others on one request and one emulated device: times by the clock by machine code, and counts.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cutlass_source.h"
#include "kiln/base/error.h"
#include "kiln/checking/device_operands.h"
#include "kiln/device/context.h"
#include "kiln/device/nvrtc.h"
#include "kiln/generator/catalogue.h"
#include "kiln/store/file_store.h"
#include "kiln/tuner/search.h"
#include "triton_peer.h"

namespace kiln::bench {

/// A variant of one side. Times are modelled.
struct Contender {
  std::string name;
  double seconds = 0;      ///< All launches of a run, from a cold L2.
  double tensor_busy = 0;  ///< Part of this time that the tensor units are busy.
  int registers = 0;       ///< Most that a launch uses.
  int blocks = 0;          ///< Blocks that an SM holds, in the longest launch.
  double waves = 0;        ///< Blocks of the longest launch over those that all SMs hold.
  std::string bound;       ///< Busiest unit of the longest launch.

  // Findings of a run for fewer images, which is checked.
  bool is_right = false;
  std::string verdict;
  double instructions = 0;  ///< For each tensor instruction; 0 if there are none.
  double sectors = 0;  ///< 32-byte sectors of global memory that warps ask for, for 1000 multiply-adds of the request.
  double wavefronts = 0;  ///< Passes of shared memory for each access of a warp: at least 1, and 4 for 16 bytes a lane.
};

/// Tiles that CUTLASS's generator lists for the request, on devices of `arch`: scripts/setup --peers, then
/// scripts/build, make the list. Throws Error(io_error) without it.
std::vector<CutlassTile> cutlass_tiles(const Request& request, const Arch& arch);
/// Whether a tile has one of these names: "128x128x32", with any number of stages, or "128x128x32x3", with three.
bool is_among(const CutlassTile& tile, const std::vector<std::string>& names);

class Comparison {
 public:
  /// Throws Error(unsupported) unless the device is emulated and has the clock by machine code.
  Comparison(std::shared_ptr<const device::ContextHandle> context, std::shared_ptr<const device::Nvrtc> nvrtc,
             store::FileStore& kernels);

  /// The fastest of the variants that `kiln tune` would try, as far as they are `candidates`. Nothing if none serves.
  std::optional<Contender> kiln(const Request& request, size_t candidates);
  /// The fastest of Kiln's variants with these tiles that copy their operands and do not split the sum, whatever the
  /// estimates say of them. Nothing if none serves.
  std::optional<Contender> kiln_with(const Request& request, const std::vector<CutlassTile>& tiles);
  /// The fastest of CUTLASS's kernels with these tiles and numbers of slices. Nothing if none serves.
  std::optional<Contender> cutlass(const Request& request, const std::vector<CutlassTile>& tiles,
                                   const std::vector<int>& slices);
  /// The fastest of these kernels of Triton that compute the request. Nothing if none does.
  std::optional<Contender> triton(const Request& request, const std::vector<TritonProgram>& programs);
  const Target& target() const { return target_; }
  /// Variants that were refused, could not be timed or were wrong, with the reason, since the last call.
  std::vector<std::string> take_remarks();
  /// All variants of both sides that have a time, since the last call.
  std::vector<Contender> take_timed() { return std::exchange(timed_, {}); }

 private:
  void remark(const std::string& variant, const Error& error);
  std::optional<Contender> fastest(const Request& request, tuner::Search& search);
  Contender timed(std::string name, const checking::DeviceOperands& operands, const checking::Checkable& variant);
  void check(Contender& contender, const Request& request, const checking::Checkable& variant);

  std::shared_ptr<const device::ContextHandle> context_;
  std::shared_ptr<const device::Nvrtc> nvrtc_;
  store::FileStore& kernels_;
  Catalogue catalogue_;
  Target target_;
  DeviceFigures figures_;
  std::vector<std::string> remarks_;
  std::vector<Contender> timed_;
};

}  // namespace kiln::bench
