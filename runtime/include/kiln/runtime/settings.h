// Settings from the environment: the templates, the tuning database, the store of kernels, packs and bundles.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "kiln/base/environment.h"
#include "kiln/generator/catalogue.h"
#include "kiln/store/file_store.h"

namespace kiln {

/// Every algorithm, made from the built-in templates or from those of KILN_TEMPLATE_PATH, and those of
/// KILN_USER_TEMPLATES.
Catalogue catalogue_of(const Environment& environment);

/// `given`, else KILN_CACHE, else kiln/tuning.db in the user's cache folder. Nothing if that is "off" or there is no
/// such folder: then tuning results live in memory.
std::optional<std::string> cache_path(const std::optional<std::string>& given, const Environment& environment);

/// Where compiled kernels are kept: `given`, else KILN_KERNEL_STORE, else kiln/kernels in the user's cache folder; as
/// much as KILN_KERNEL_STORE_MIB says. Nothing if that is "off" or there is no such folder: then every process
/// compiles. Shared with other users where it is `given`, or KILN_KERNEL_STORE_SHARED says so.
std::optional<store::StoreOptions> kernel_store(const std::optional<std::string>& given,
                                                const Environment& environment);

/// How much a Context keeps of plans that nobody else holds.
struct KeptPlans {
  uint64_t plans;
  uint64_t bytes;  ///< Size of their compiled code.
};

/// KILN_KEPT_PLANS and KILN_KEPT_PLANS_MIB, else what a server needs for the sizes that it sees in a while.
KeptPlans kept_plans(const Environment& environment);

/// `given`, then the packs of KILN_PACK_PATH: each entry a file, or a folder whose *.pack files are taken by name.
std::vector<std::string> pack_paths(const std::vector<std::string>& given, const Environment& environment);

/// As pack_paths(), for bundles: KILN_BUNDLE_PATH, and the *.kiln files of a folder.
std::vector<std::string> bundle_paths(const std::vector<std::string>& given, const Environment& environment);

/// The packs that are installed on the machine: kiln/packs/*.pack in each of Environment::data_dirs, by name.
std::vector<std::string> system_packs(const Environment& environment);

}  // namespace kiln
