// One layer, run with the variant that a Context has for it, checked and timed.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "json.h"
#include "kiln/base/environment.h"
#include "kiln/context.h"
#include "kiln/device/context.h"
#include "kiln/device/nvrtc.h"
#include "kiln/execution/executable.h"
#include "kiln/generator/arch.h"
#include "kiln/generator/catalogue.h"
#include "kiln/store/file_store.h"

namespace kiln::cli {

/// Tools that a check may need besides the plan. NVRTC is looked for only then: what a bundle holds runs without.
class CheckTools {
 public:
  CheckTools(const Environment& environment, std::shared_ptr<const device::ContextHandle> device);

  const Catalogue& catalogue() const { return catalogue_; }

  /// The trusted variant of `request`. Throws Error(missing_library, unsupported) where it cannot be compiled here.
  execution::Executable trusted(const Request& request);

 private:
  const Environment& environment_;
  std::shared_ptr<const device::ContextHandle> device_;
  Catalogue catalogue_;
  std::optional<store::FileStore> kernels_;
  std::shared_ptr<const device::Nvrtc> nvrtc_;
  Target target_;
};

struct Checked {
  bool right = false;
  std::string text;  ///< "ok", with how many outputs where that is not all; or what was wrong.
};

struct LayerResult {
  std::string failure{};  ///< Why it did not run; then nothing below is set.
  std::string variant{}, program{}, choice{};
  std::optional<double> seconds{};  ///< Nothing if the device knows no time.
  double roofline_seconds = 0;
  Json launches = Json::array();   ///< Result of launches_of(), of an emulated device.
  std::optional<Checked> check{};  ///< If it was asked for.

  bool right() const { return failure.empty() && (!check || check->right); }
};

struct LayerRun {
  bool check = false;
  int samples = 20;  ///< Timed runs on a real device.
};

/// Runs the variant that `context` has for `request`. A layer that cannot be run, or does not fit into memory, is a
/// failed one: nothing is thrown.
LayerResult run_layer(Context& context, const std::shared_ptr<const device::ContextHandle>& device,
                      const Request& request, const LayerRun& options, CheckTools& tools);

}  // namespace kiln::cli
