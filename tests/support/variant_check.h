// Runs variants on the test device and compares them with the reference: what template, tuner and runtime tests share.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "kiln/checking/check.h"
#include "kiln/device/context.h"
#include "kiln/device/nvrtc.h"
#include "kiln/execution/compile.h"
#include "kiln/execution/executable.h"
#include "kiln/generator/catalogue.h"

namespace kiln::testing_support {

/// The device that tests run on: what KILN_DRIVER names, else a GPU, else the emulator; and the NVRTC
/// at hand.
struct TestDevice {
  std::shared_ptr<const device::ContextHandle> context;
  std::shared_ptr<const device::Nvrtc> nvrtc;
  Target target;
  DeviceFigures figures;

  /// Opened at the first call, the same one from then on. Throws Error if there is none.
  static const TestDevice& get();
  /// The device of that architecture, or null: a real driver has only its own.
  static const TestDevice* find(const Arch& arch);

  /// `program`, compiled for `for_target` unless a test has done so before, on this device. A real device gets cubins,
  /// the emulated one what `products` say.
  execution::Executable load(const Program& program, const Target& for_target, const std::vector<std::string>& operands,
                             execution::Products products = execution::Products::ptx) const;
};

/// Every fill, so that lost terms, rounding and special values all show. No times.
checking::CheckOptions thorough();

/// The operands of one request on the test device, for any number of its variants.
///
///   VariantChecker checker(catalogue, Request::parse("softmax_forward x=f32:3x7:nc"));
///   for (const Choice& choice : choices) EXPECT_TRUE(checker.matches_reference(choice));
class VariantChecker {
 public:
  /// `target`: what to generate for, and to run on: the test device of that architecture; the first one if not given.
  /// Throws Error(unsupported) if there is none (see TestDevice::find).
  VariantChecker(const Catalogue& catalogue, const Request& request, checking::CheckOptions options = thorough(),
                 std::optional<Target> target = std::nullopt);

  /// Compiles, loads and checks one variant. Fails with the request, the choice and what was wrong. `products`: whether
  /// ptxas sees it on the emulated device, too, which runs PTX.
  testing::AssertionResult matches_reference(const Choice& choice,
                                             execution::Products products = execution::Products::ptx);
  /// The same for a program that stands in no catalogue.
  testing::AssertionResult matches_reference(const Program& program, const std::string& name,
                                             execution::Products products = execution::Products::ptx);

 private:
  /// Runs the trusted variant first, if the check needs it.
  testing::AssertionResult prepare();

  const Catalogue& catalogue_;
  Request request_;
  checking::CheckOptions options_;
  Target target_;
  const TestDevice& device_;
  std::optional<checking::Checker> checker_;
};

/// One variant of one request.
testing::AssertionResult matches_reference(const Catalogue& catalogue, const Request& request, const Choice& choice,
                                           checking::CheckOptions options = thorough());

}  // namespace kiln::testing_support
