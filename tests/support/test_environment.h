// The environment of contexts that tests open.
#pragma once

#include "kernel_folder.h"
#include "kiln/base/environment.h"

namespace kiln::testing_support {

/// Environment of this process, without the cache, packs, bundles and templates of the person who runs the test: it
/// neither reads nor writes them.
inline Environment test_environment() {
  Environment environment = Environment::read();
  environment.cache = "off";
  environment.cache_home.clear();
  environment.pack_path.clear();
  environment.bundle_path.clear();
  environment.kernel_store = kernel_folder();
  environment.data_dirs.clear();
  environment.record.reset();
  return environment;
}

}  // namespace kiln::testing_support
