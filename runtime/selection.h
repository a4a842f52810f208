// Which variants to try for a request, in the order of precedence.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
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
  std::string source;    ///< "measured on this device", ..., "bundle app.kiln", "from 3 neighbours, ...", "estimate"
  std::string device{};  ///< DeviceId line of the device that a stored one was timed on.
  Basis basis = Basis::estimated;
  std::optional<BundledChoice> bundled{};    ///< Where the compiled program is, if that is a bundle.
  std::shared_ptr<const Program> program{};  ///< Null where it is bundled.
};

/// The same layer in memory that is aligned to its elements alone: kernels of it serve all sizes alike.
Request of_any_alignment(Request request);

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

/// Is shown one selection after the other, and says whether to stop there.
using Visit = std::function<bool(const Selection&)>;

/// Joins what is stored (cache), what was shipped compiled (bundles) and what can be generated (catalogue), for one
/// request on one device. Programs are made of what is looked at, and of nothing behind it.
struct Selector {
  Variants& variants;
  const cache::Winners& winners;
  const Bundles& bundles;
  const DeviceFigures& figures;
  cache::Filter filter;
  Permissions permissions{};

  /// Variants that can be generated, best prediction first.
  Candidates candidates() const { return variants.candidates(figures); }
  /// Whether the filter, as narrowed by what the request itself demands, admits this variant of the catalogue.
  bool admits(const Choice& choice) const;
  /// Stored variants that the library can still generate, in the order of precedence. A pack's claims about workspace
  /// and determinism are text from outside: the filter is applied to the program itself too. Variants that
  /// must_not_use() refuses are left out, here and below; so are claims of packs with an impossible time.
  std::vector<Selection> stored() const;
  /// Shows `visit` what is stored and what is in bundles, in the order of precedence: by basis, then what is stored
  /// before what is bundled. Variants in bundles, in the order of Bundles::find(), are whole programs, whatever the
  /// library generates now. Returns whether `visit` stopped.
  bool visit_named(const Visit& visit) const;
  std::vector<Selection> named() const;
  /// Shows `visit` the best `count` of `candidates` within the filter, best first. Returns whether `visit` stopped.
  bool visit_estimated(const Candidates& candidates, size_t count, const Visit& visit) const;
  std::vector<Selection> estimated(const Candidates& candidates, size_t count) const;
  /// Variants in bundles that visit_named() leaves out, each with the bundle and the reason.
  std::vector<Withheld> withheld_of_bundles() const;
  /// Variants among `candidates`, within the filter, that must not be used; best prediction first, `most` at the most.
  std::vector<Withheld> withheld(const Candidates& candidates, size_t most) const;
  /// Variants that somebody else's records bar, stored or bundled, in the order of named(): for where nothing else
  /// serves, since packs may lie. Each says so in its source.
  std::vector<Selection> doubted() const;
  /// The same of the best `count` of `candidates`.
  std::vector<Selection> doubted(const Candidates& candidates, size_t count) const;
  /// Whether something is stored with a time of this very device.
  bool is_timed() const;
  /// Variants for which packs claim impossible times, in the order of precedence.
  std::vector<NotBelieved> not_believed() const;
  /// Why nobody gets this variant of the catalogue unasked: its known failure, or that it is a user template which no
  /// check of the user's own database has passed for this request. Nothing if there is no such reason.
  std::optional<std::string> must_not_use(const Choice& choice) const;

 private:
  const std::string& key() const { return variants.request().key(); }
  cache::Filter filter_of_request() const;
  bool admits(const Program& program) const;
  std::optional<std::string> must_not_use(const Choice& choice, LazyProgram& program) const;
  std::optional<std::string> doubt(const Choice& choice) const;
  std::optional<Selection> usable(const cache::Choice& candidate) const;
  bool visit_best(const Candidates& candidates, size_t count, bool doubted, const Visit& visit) const;
  std::optional<std::string> disbelief(const cache::Choice& candidate) const;
  std::optional<std::string> doubt(const execution::BundledVariant& variant) const;
  std::optional<std::string> why_not(const execution::BundledVariant& variant) const;
};

/// "predicted by machine-code clock 1".
std::string predicted_by(std::string_view clock);

/// Failure of this variant that the user's own database holds, in words: "it gave a wrong result on ...". Nothing if it
/// knows of none. `program` has to be one that can be made.
std::optional<std::string> known_failure(const cache::Winners& winners, const std::string& key, const Choice& choice,
                                         LazyProgram& program);

}  // namespace kiln
