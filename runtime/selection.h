// Which variants to try for a request, in the order of precedence.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "bundles.h"
#include "kiln/cache/winners.h"
#include "kiln/generator/catalogue.h"

namespace kiln {

/// Kinds of evidence for the time of a variant; the first that exists decides.
enum class Basis {
  timed,      ///< On this device, or another of its architecture; by the same clock.
  predicted,  ///< Modelled for this card by the clock of an emulated device.
  estimated,  ///< By estimate().
};

/// A variant with the reason for choosing it.
struct Selection {
  Choice choice;
  double seconds = 0;
  std::string source;    ///< "measured on this device", ..., "bundle app.kiln", "estimate"
  std::string device{};  ///< DeviceId line of the device that a stored one was timed on.
  Basis basis = Basis::estimated;
  std::optional<BundledChoice> bundled{};  ///< Where the compiled program is, if that is a bundle.
};

/// Permissions that an application has to ask for: ContextOptions of the same names.
struct Permissions {
  bool failed_variants = false;
  bool unchecked_templates = false;
};

/// A variant that is not used, and why.
struct Withheld {
  Choice choice;
  std::string reason;
};

/// A claim of a pack about a variant that cannot be true, and the reason.
struct NotBelieved {
  std::string algorithm, config, pack, reason;

  /// A sentence.
  std::string text(const Request& request) const;
};

/// Joins what is stored (cache), what was shipped compiled (bundles) and what can be generated (catalogue), for one
/// device.
struct Selector {
  const Catalogue& catalogue;
  const cache::Winners& winners;
  const Bundles& bundles;
  const Target& target;
  const DeviceFigures& figures;
  cache::Filter filter;
  Permissions permissions{};

  /// The filter, as narrowed by what the request itself demands.
  cache::Filter filter_of(const Request& request) const;
  bool admits(const Request& request, const Program& program) const;
  /// Variants that can be generated for `request`, best prediction first.
  Candidates candidates(const Request& request) const { return catalogue.candidates(request, target, figures); }
  /// Stored variants that the library can still generate, in the order of precedence. A pack's claims about workspace
  /// and determinism are text from outside: the filter is applied to the program itself too. Variants that
  /// must_not_use() refuses are left out, here and below; so are claims of packs with an impossible time.
  std::vector<Selection> stored(const Request& request) const;
  /// Variants in bundles, in the order of Bundles::find(). They are whole programs, whatever the library generates now.
  std::vector<Selection> bundled(const Request& request) const;
  /// stored() and bundled() in the order of precedence: by basis, then what is stored before what is bundled.
  std::vector<Selection> named(const Request& request) const;
  /// Variants in bundles that bundled() leaves out, each with the bundle and the reason.
  std::vector<Withheld> withheld_of_bundles(const Request& request) const;
  /// The best `count` of `candidates` within the filter, best first.
  std::vector<Selection> estimated(const Request& request, const Candidates& candidates, size_t count) const;
  /// Variants among `candidates`, within the filter, that must not be used; best prediction first, `most` at the most.
  std::vector<Withheld> withheld(const Request& request, const Candidates& candidates, size_t most) const;
  /// Variants that somebody else's records bar, stored or bundled, in the order of named(): for where nothing else
  /// serves, since packs may lie. Each says so in its source.
  std::vector<Selection> doubted(const Request& request) const;
  /// The same of the best `count` of `candidates`.
  std::vector<Selection> doubted(const Request& request, const Candidates& candidates, size_t count) const;
  /// Whether something is stored with a time of this very device.
  bool is_timed(const Request& request) const;
  /// Variants for which packs claim impossible times, in the order of precedence.
  std::vector<NotBelieved> not_believed(const Request& request) const;
  /// Why nobody gets this variant of the catalogue unasked: its known failure, or that it is a user template which no
  /// check of the user's own database has passed for this request. Nothing if there is no such reason.
  std::optional<std::string> must_not_use(const Request& request, const Choice& choice) const;

 private:
  std::optional<std::string> doubt(const Request& request, const Choice& choice) const;
  std::optional<Selection> usable(const Request& request, const cache::Choice& candidate) const;
  std::vector<Selection> best_of(const Request& request, const Candidates& candidates, size_t count,
                                 bool doubted) const;
  std::optional<std::string> disbelief(const Request& request, const cache::Choice& candidate) const;
  std::optional<std::string> doubt(const Request& request, const execution::BundledVariant& variant) const;
  std::optional<std::string> why_not(const Request& request, const execution::BundledVariant& variant) const;
};

/// "predicted by machine-code clock 1".
std::string predicted_by(std::string_view clock);

/// Gives the digest of a variant's program, which is costly to make: asked for only where it matters.
using ProgramDigest = std::function<std::string()>;

/// Failure of this variant that the user's own database holds, in words: "it gave a wrong result on ...". Nothing if it
/// knows of none.
std::optional<std::string> known_failure(const cache::Winners& winners, const Request& request, const Choice& choice,
                                         const ProgramDigest& program);

}  // namespace kiln
