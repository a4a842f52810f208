// Which variants of a bundle are for a device.
#include "bundles.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "kiln/device/arch.h"

namespace kiln::bundles_test {
namespace {

device::DeviceInfo sm_90(bool emulated, int sms = 132) {
  device::DeviceInfo info;
  info.name = "H200";
  info.cc_major = 9;
  info.cc_minor = 0;
  info.sms = sms;
  info.emulated = emulated;
  return info;
}

execution::BundleEntry variant(const std::string& config, const std::string& arch, bool emulated,
                               const std::string& device = "another", int sms = 132) {
  execution::BundleEntry entry;
  entry.variant.request = "a request";
  entry.variant.algorithm = "softmax_warp";
  entry.variant.config = config;
  entry.variant.arch = arch;
  entry.variant.emulated = emulated;
  entry.variant.device = device;
  entry.variant.sms = sms;
  entry.compiled.program.sources = {config};
  entry.variant.program = entry.compiled.program.digest();
  entry.compiled.images = {{"ptx of " + config, "cubin of " + config, {}}};
  return entry;
}

// The configs of what a device finds, in order.
std::vector<std::string> found(const std::vector<execution::BundleEntry>& entries, const device::DeviceInfo& device) {
  const std::string path = testing::TempDir() + "kiln_bundles.kiln";
  execution::write_bundle(path, entries, "1", "13.0");
  const Bundles bundles({path}, device, [](const std::string& message) { ADD_FAILURE() << message; });
  std::vector<std::string> configs;
  for (const BundledChoice& choice : bundles.find("a request")) configs.push_back(choice.variant().config);
  return configs;
}

// A variant that the emulated device was found to be best with says nothing of a real one of the same architecture.
TEST(Bundles, OfAnEmulatedDeviceAreNotForARealOneNorTheOtherWayRound) {
  const std::string arch = device::real_arch(9, 0);
  const std::vector<execution::BundleEntry> both = {variant("real", arch, false), variant("modelled", arch, true)};
  EXPECT_THAT(found(both, sm_90(false)), testing::ElementsAre("real"));
  EXPECT_THAT(found(both, sm_90(true)), testing::ElementsAre("modelled"));
}

TEST(Bundles, OfAnotherArchitectureAreNotForIt) {
  EXPECT_THAT(found({variant("far", "sm_80", false)}, sm_90(false)), testing::IsEmpty());
}

TEST(Bundles, ForTheVeryDeviceComeFirstThenThoseOfNearSizeThenThoseOfNone) {
  const std::string arch = device::real_arch(9, 0);
  EXPECT_THAT(found({variant("estimated", arch, false, "", 0), variant("far", arch, false, "another", 66),
                     variant("near", arch, false, "another", 144), variant("here", arch, false, sm_90(false).id(), 1)},
                    sm_90(false)),
              testing::ElementsAre("here", "near", "far", "estimated"));
}

}  // namespace
}  // namespace kiln::bundles_test
