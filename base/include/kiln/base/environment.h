// The environment variables that Kiln reads, in one place. docs/environment.md is the user's table of them.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kiln/base/error.h"

namespace kiln {

/// Reaction to NaN or infinity in an operand or a result.
enum class NumericsPolicy { warn, error };

/// Plan that serves a call of a shape which has none yet.
enum class FirstCall {
  exact,  ///< The plan of the shape: kernels that bundles and the store of compiled kernels lack are compiled first.
  /// An open kernel, which serves many shapes, where one is compiled; else as with `exact`. The plan of the shape, and
  /// open kernels for further shapes, are made in the background. Results of the two may differ in bits, so a
  /// `deterministic` request gets its plan at once, unless it is `batch_invariant`.
  at_once,
};

/// Kiln's settings from the environment. Read once where a Context or a command starts, then passed on.
///
/// The emulator is loaded like a driver and knows nothing of Kiln, so it reads its own KILN_EMULATOR_* variables.
struct Environment {
  std::optional<std::string> driver;         ///< KILN_DRIVER: "cuda", "emulator", or the path of a driver library.
  std::optional<std::string> nvrtc;          ///< KILN_NVRTC: path of libnvrtc.
  std::optional<std::string> cache;          ///< KILN_CACHE: path of the tuning database; "off" keeps it in memory.
  std::vector<std::string> pack_path;        ///< KILN_PACK_PATH: colon-separated packs or folders of packs.
  std::vector<std::string> bundle_path;      ///< KILN_BUNDLE_PATH: colon-separated bundles or folders of bundles.
  std::optional<std::string> record;         ///< KILN_RECORD: file that receives the requests an application makes.
  bool log = false;                          ///< KILN_LOG: 0 or 1; one replayable line per call on stderr.
  std::optional<std::string> worker;         ///< KILN_WORKER: path of the `kiln` program that runs as tuning worker.
  std::optional<std::string> template_path;  ///< KILN_TEMPLATE_PATH: folder whose templates override built-in ones.
  std::optional<std::string> kernel_store;   ///< KILN_KERNEL_STORE: folder of compiled kernels; "off" for none.
  std::optional<uint64_t> kernel_store_mib;  ///< KILN_KERNEL_STORE_MIB: the most it may hold, in MiB.
  bool kernel_store_shared = false;          ///< KILN_KERNEL_STORE_SHARED: other users may write that folder.
  std::optional<uint64_t> kept_plans;        ///< KILN_KEPT_PLANS: plans that a Context keeps that nobody holds.
  std::optional<uint64_t> kept_plans_mib;    ///< KILN_KEPT_PLANS_MIB: the most compiled code they may have, in MiB.
  std::vector<std::string> user_templates;   ///< KILN_USER_TEMPLATES: colon-separated folders of user templates.
  std::optional<FirstCall> first_call;       ///< KILN_FIRST_CALL: exact or at_once.
  std::optional<NumericsPolicy> check_numerics;  ///< KILN_CHECK_NUMERICS: NaN and infinities of calls are looked for.
  std::string cache_home;                        ///< XDG_CACHE_HOME, else HOME/.cache; empty if neither is set.
  std::vector<std::string> data_dirs;            ///< XDG_DATA_DIRS, else /usr/local/share and /usr/share.

  /// Names of variables that begin with KILN_ and that nothing reads: a misspelt setting must not be silently ignored.
  /// The `kiln` program refuses to run, a Context announces them.
  std::vector<std::string> unknown;

  /// Why cache_home, `cache` or `kernel_store` is left out although a variable names it: another user decides about
  /// what is there (kiln/base/trusted_place.h). To be announced.
  std::vector<Error> not_trusted;
  bool cache_not_trusted = false;  ///< The database is among them: none is used, and nobody asked for that.

  /// Set by a program that shows which device it uses, no variable: nobody need be told that the emulator stands in for
  /// a GPU.
  bool shows_device = false;

  using Lookup = std::function<const char*(const char* name)>;

  /// Reads the process environment, and leaves out places of the cache that are not to be trusted. Throws
  /// Error(invalid_argument) on a value that a variable does not accept.
  static Environment read();

  /// As read(), from variables that the caller vouches for: looks for no unknown names and at no owners.
  static Environment read(const Lookup& lookup);
};

/// Error about one of Environment::unknown, with the variable that was probably meant.
Error unknown_variable(std::string_view name);

}  // namespace kiln
