#include "variant_check.h"

#include <cstdlib>
#include <exception>
#include <string>
#include <vector>

#include "kernel_folder.h"
#include "kiln/base/environment.h"
#include "kiln/base/error.h"
#include "kiln/checking/trusted_program.h"
#include "kiln/execution/compile.h"
#include "kiln/execution/target.h"
#include "kiln/store/file_store.h"

namespace kiln::testing_support {
namespace {

TestDevice open_device(const std::shared_ptr<const device::Driver>& driver, int ordinal,
                       const std::shared_ptr<const device::Nvrtc>& nvrtc) {
  const device::Device device(driver, ordinal);
  TestDevice opened;
  opened.nvrtc = nvrtc;
  opened.target = execution::target_for(device.info().cc_major, device.info().cc_minor, *nvrtc);
  opened.figures = execution::figures_of(device.info());
  opened.context = device::ContextHandle::acquire(device);
  return opened;
}

// All devices of the driver that tests run on. Unless told otherwise the emulator has one of every architecture.
std::vector<TestDevice> open_devices() {
  setenv("KILN_EMULATOR_DEVICE", "h200,t4,a100,a10,l40s,b200,rtx5090", 0);
  const Environment environment = Environment::read();
  const auto driver = device::Driver::open({.library = environment.driver});
  const auto nvrtc = device::Nvrtc::open({.library = environment.nvrtc});
  std::vector<TestDevice> devices;
  for (int ordinal = 0; ordinal < driver->device_count(); ++ordinal) {
    devices.push_back(open_device(driver, ordinal, nvrtc));
  }
  return devices;
}

const std::vector<TestDevice>& all_devices() {
  static const std::vector<TestDevice> devices = open_devices();
  return devices;
}

// Store of the kernels that tests compiled: some sources serve several cases, or stand in a pairwise cover besides.
store::FileStore& kernels() {
  static store::FileStore compiled({.folder = kernel_folder(), .limit_bytes = kernel_folder_mib << 20});
  return compiled;
}

const TestDevice& device_for(const Target& target) {
  if (const TestDevice* device = TestDevice::find(target.arch)) return *device;
  throw Error(ErrorCode::unsupported, "there is no test device of " + target.arch.name());
}

}  // namespace

const TestDevice& TestDevice::get() {
  return all_devices().front();
}

const TestDevice* TestDevice::find(const Arch& arch) {
  for (const TestDevice& device : all_devices()) {
    if (device.target.arch == arch) return &device;
  }
  return nullptr;
}

execution::Executable TestDevice::load(const Program& program, const Target& for_target,
                                       const std::vector<std::string>& operands, execution::Products products) const {
  if (!context->driver().is_emulated()) products = execution::Products::cubin;
  return {context, execution::compile(*nvrtc, program, for_target, &kernels(), products), operands};
}

checking::CheckOptions thorough() {
  checking::CheckOptions options;
  options.fills = {reference::Values::uniform, reference::Values::integers, reference::Values::wide,
                   reference::Values::specials};
  return options;
}

VariantChecker::VariantChecker(const Catalogue& catalogue, const Request& request, checking::CheckOptions options,
                               std::optional<Target> target)
    : catalogue_(catalogue),
      request_(request),
      options_(std::move(options)),
      target_(target.value_or(TestDevice::get().target)),
      device_(device_for(target_)) {}

testing::AssertionResult VariantChecker::prepare() {
  if (checker_) return testing::AssertionSuccess();
  checker_.emplace(device_.context, request_, options_);
  if (!checking::needs_trusted(request_, options_)) return testing::AssertionSuccess();
  const checking::Verdict verdict = checker_->trust(device_.load(
      checking::trusted_program(catalogue_, request_, target_), target_, checking::trusted_operand_names(request_)));
  if (verdict.passed) return testing::AssertionSuccess();
  return testing::AssertionFailure() << request_.key() << "\n  trusted: " << verdict.text;
}

testing::AssertionResult VariantChecker::matches_reference(const Choice& choice, execution::Products products) {
  const std::string name = choice.algorithm + " " + choice.config.print();
  try {
    return matches_reference(catalogue_.program(request_, target_, choice), name, products);
  } catch (const Error& error) {
    return testing::AssertionFailure() << request_.key() << "\n  " << name << ": " << error.what();
  }
}

testing::AssertionResult VariantChecker::matches_reference(const Program& program, const std::string& name,
                                                           execution::Products products) {
  try {
    if (testing::AssertionResult prepared = prepare(); !prepared) return prepared;
    const checking::Verdict verdict =
        checker_->check(device_.load(program, target_, checker_->operand_names(), products));
    if (verdict.passed) return testing::AssertionSuccess() << verdict.text;
    return testing::AssertionFailure() << request_.key() << "\n  " << name << ": " << verdict.text;
  } catch (const std::exception& error) {
    return testing::AssertionFailure() << request_.key() << "\n  " << name << ": " << error.what();
  }
}

testing::AssertionResult matches_reference(const Catalogue& catalogue, const Request& request, const Choice& choice,
                                           checking::CheckOptions options) {
  return VariantChecker(catalogue, request, std::move(options)).matches_reference(choice);
}

}  // namespace kiln::testing_support
