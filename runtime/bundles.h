// The bundles of a Context: compiled variants that came with the application.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "kiln/device/device.h"
#include "kiln/execution/bundle.h"

namespace kiln {

/// A variant of a bundle that runs on the device at hand.
struct BundledChoice {
  std::shared_ptr<const execution::Bundle> bundle;
  size_t index = 0;
  std::string clock{};  ///< Clock of the machine code that predicts its time for this device: "machine-code clock 1".
                        ///< Empty: it needs none.

  const execution::BundledVariant& variant() const { return bundle->variants()[index]; }
};

/// Variants in bundles for one device. Immutable once made; thread-safe.
class Bundles {
 public:
  /// Opens `paths`; one that cannot be used goes to `announce`.
  Bundles(const std::vector<std::string>& paths, const device::DeviceInfo& device,
          const std::function<void(const std::string&)>& announce);

  bool empty() const { return opened_.empty(); }

  /// The variants of a request: those timed on this device first, then those timed on others, then those that a clock
  /// predicts, then those that were only estimated; each by the distance of the number of multiprocessors of the device
  /// that they were timed on, then in the order of the bundles.
  std::vector<BundledChoice> find(const std::string& key) const;
  /// Whether there is a program, made for any request, or each of its sources in some program.
  bool has(const Program& program) const;
  /// Gives that program; nothing where there is none. Throws as Bundle::load().
  std::optional<execution::CompiledProgram> load(const Program& program) const;

  /// "app.kiln (sm_80, sm_90a)", with commas between: what was opened, and what for.
  std::string describe() const;

 private:
  std::vector<std::shared_ptr<const execution::Bundle>> opened_;
  std::unordered_map<std::string, std::vector<BundledChoice>> by_request_;
  // A source of a bundled program.
  struct BundledSource {
    BundledChoice program;
    size_t number;
  };

  std::unordered_map<std::string, BundledChoice> by_program_;  // by its digest
  std::unordered_map<std::string, BundledSource> by_source_;   // by that of its code
};

}  // namespace kiln
