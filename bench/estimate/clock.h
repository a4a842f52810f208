// Times of variants by the clock of an emulated device, without running or checking them.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "judge.h"
#include "kiln/device/context.h"
#include "kiln/device/nvrtc.h"
#include "kiln/execution/target.h"
#include "kiln/generator/catalogue.h"
#include "kiln/store/file_store.h"
#include "kiln/tuner/device_timer.h"
#include "kiln/tuner/search.h"

namespace kiln::bench {

/// A file of times: a line of JSON for each variant, with what the clock tells of its launches. Lines are appended, so
/// several processes may write the same file.
class TimesFile {
 public:
  /// Reads the lines of `device`, if there is such a file. Throws Error(parse_error) for others than these.
  TimesFile(std::string path, std::string device);

  const Times& of(const std::string& request) { return times_[request]; }
  /// Infinite seconds stand for a variant that is not to be timed, because its registers spill or the clock refuses it.
  void add(const std::string& request, const std::string& variant, double seconds, const std::string& launches);

 private:
  std::string path_, device_;
  std::map<std::string, Times> times_;
};

/// Compiles and times variants. Throws Error(unsupported) for a device that tells no times without running.
class VariantClock {
 public:
  VariantClock(std::shared_ptr<const device::ContextHandle> context, std::shared_ptr<const device::Nvrtc> nvrtc,
               const Catalogue& catalogue, const Target& target, const std::optional<store::StoreOptions>& kernels);

  /// Times all variants that a search by `options` gives and `file` lacks, of those algorithms whose whole
  /// name matches the regular expression `names`.
  void time(const Request& request, const Candidates& candidates, const tuner::SearchOptions& options,
            const std::string& names, TimesFile& file);
  /// Seconds of one variant, from `file` if it has them; no_time for what is not to be timed. `may_spill`: not for its
  /// registers.
  double time(const Request& request, const Choice& choice, bool may_spill, TimesFile& file);

 private:
  std::shared_ptr<const device::ContextHandle> context_;
  std::shared_ptr<const device::Nvrtc> nvrtc_;
  const Catalogue& catalogue_;
  Target target_;
  std::optional<store::FileStore> kernels_;
  tuner::DeviceTimer timer_;
};

}  // namespace kiln::bench
