// Bundling: from what is stored of an application's requests to a bundle of compiled variants. Used by `kiln bundle`.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "kiln/cache/database.h"
#include "kiln/cache/winners.h"
#include "kiln/device/nvrtc.h"
#include "kiln/execution/bundle.h"
#include "kiln/generator/catalogue.h"
#include "kiln/store/file_store.h"

namespace kiln {

struct BundleOptions {
  std::vector<Arch> archs;
  bool emulated = false;  ///< For the emulated device: PTX of what was tuned on it. Else cubins, for real ones.
  bool untuned = false;   ///< Where nothing is stored for an architecture, take the best estimate.
  bool unchecked_templates = false;  ///< As ContextOptions::allow_unchecked_templates.
  cache::Filter filter{};            ///< The application's permissions: ContextOptions of the same names.
};

/// A variant to compile, and why it was chosen.
struct BundleChoice {
  Request request;
  Target target;
  Choice choice;
  double seconds = 0;
  std::string source;       ///< "measured on this device", ..., "estimate"
  std::string device;       ///< DeviceId line of the device that it was timed on; empty for an estimate.
  int sms = 0;              ///< SMs of that device.
  std::string open_line{};  ///< The line that an open kernel serves sizes of, `request` among them; else empty.
};

/// A request that has no variant for an architecture.
struct BundleGap {
  std::string request, arch, reason;
};

struct BundlePlan {
  std::vector<BundleChoice> choices;  ///< By request, then architecture, then device.
  std::vector<BundleGap> gaps;
  std::vector<std::string> remarks{};     ///< Lines with open extents of which few sizes fit.
  std::vector<std::string> not_believed;  ///< Claims of packs that cannot be true, and are passed over; each once.
};

/// Chooses: for each request and architecture, the winner of every device of that architecture that has one in
/// `database` or `packs`. Variants that ContextOptions::allow_failed_variants would permit are not taken. Packs that
/// cannot be read throw Error, as read_pack_file().
BundlePlan plan_bundle(std::span<const Request> requests, const Catalogue& catalogue, const device::Nvrtc& nvrtc,
                       const cache::Database& database, const std::vector<std::string>& packs,
                       const BundleOptions& options);

/// Chooses open kernels for lines of request syntax with open extents: `?`, `?N` (up to N) or `?NAME`, where extents of
/// one name are equal, and those without one are, at the same place in their tensors. Draws sizes, the same ones each
/// time, and takes few kernels that serve all of them, each within 1.3 times the best estimate on a usual card of the
/// architecture. A gap for a line of which no size makes a request that open kernels serve, with the reason.
///
///   softmax_forward x=f16:?x?4096        conv_forward x=f16:?x64x?x?:nhwc w=f16:128x64x3x3:nhwc pad=1
///   gemm a=f16:?mx?k b=f16:?kx?n c=f16:?mx?n
BundlePlan plan_open_kernels(std::span<const std::string> lines, const Catalogue& catalogue, const device::Nvrtc& nvrtc,
                             const BundleOptions& options);

/// Compiles all choices, equal programs once, on all threads, through `kernels` unless that is null. Throws as
/// execution::compile() for the first that fails.
std::vector<execution::BundleEntry> compile_bundle(const BundlePlan& plan, const Catalogue& catalogue,
                                                   const device::Nvrtc& nvrtc, bool emulated,
                                                   store::FileStore* kernels);

}  // namespace kiln
