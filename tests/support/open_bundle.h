// A bundle of open kernels, for tests of rooms that link kiln::runtime.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "kiln/base/environment.h"
#include "kiln/device/device.h"
#include "kiln/device/nvrtc.h"
#include "kiln/runtime/bundling.h"
#include "kiln/templates/catalogue.h"

namespace kiln::test {

/// Writes a bundle for sizes of `lines` on a device. Returns the sizes whose whole programs it has.
inline std::vector<Request> write_open_bundle(const std::string& path, const std::vector<std::string>& lines,
                                              const device::DeviceInfo& info, const Environment& environment) {
  const Catalogue catalogue = make_catalogue(embedded_sources());
  const auto nvrtc = device::Nvrtc::open({environment.nvrtc});
  BundleOptions what;
  what.archs = {Arch::of(info.cc_major, info.cc_minor)};
  what.emulated = info.emulated;
  const BundlePlan plan = plan_open_kernels(lines, catalogue, *nvrtc, what);
  EXPECT_TRUE(plan.gaps.empty());
  execution::write_bundle(path, compile_bundle(plan, catalogue, *nvrtc, info.emulated, nullptr), "1", "13.0");
  std::vector<Request> sizes;
  for (const BundleChoice& choice : plan.choices) sizes.push_back(choice.request);
  return sizes;
}

}  // namespace kiln::test
