#include "variant_check.h"

#include <exception>

#include "kiln/base/environment.h"
#include "kiln/base/error.h"
#include "kiln/execution/compile.h"
#include "kiln/execution/target.h"

namespace kiln::testing_support {
namespace {

TestDevice open_test_device() {
  const Environment environment = Environment::read();
  TestDevice opened;
  auto driver = device::Driver::open({.library = environment.driver.value_or("emulator")});
  const device::Device first(driver, 0);
  opened.nvrtc = device::Nvrtc::open({.library = environment.nvrtc});
  opened.target = execution::target_for(first.info().cc_major, first.info().cc_minor, *opened.nvrtc);
  opened.figures = execution::figures_of(first.info());
  opened.context = device::ContextHandle::acquire(first);
  return opened;
}

}  // namespace

const TestDevice& TestDevice::get() {
  static const TestDevice device = open_test_device();
  return device;
}

tuner::CheckOptions thorough() {
  tuner::CheckOptions options;
  options.fills = {reference::Values::uniform, reference::Values::integers, reference::Values::wide,
                   reference::Values::specials};
  return options;
}

VariantChecker::VariantChecker(const Catalogue& catalogue, const Request& request, tuner::CheckOptions options,
                               std::optional<Target> target)
    : catalogue_(catalogue),
      request_(request),
      options_(std::move(options)),
      target_(target.value_or(TestDevice::get().target)) {}

execution::Executable VariantChecker::load(const Program& program) const {
  const TestDevice& device = TestDevice::get();
  const execution::CompiledProgram compiled = execution::compile(*device.nvrtc, program, target_);
  return {device.context, compiled, checker_->operand_names()};
}

testing::AssertionResult VariantChecker::prepare() {
  if (checker_) return testing::AssertionSuccess();
  checker_.emplace(TestDevice::get().context, request_, options_);
  if (tuner::is_checked_in_full(request_, options_)) return testing::AssertionSuccess();
  const Algorithm& trusted = catalogue_.trusted(request_.operation);
  const std::optional<Config> config = trusted.space().first_legal(request_, target_);
  if (!config) return testing::AssertionFailure() << "no legal point of the trusted " << trusted.name();
  const tuner::Verdict verdict =
      checker_->trust(load(trusted.program(catalogue_.library(), request_, target_, *config)));
  if (verdict.passed) return testing::AssertionSuccess();
  return testing::AssertionFailure() << request_.key() << "\n  trusted " << trusted.name() << ": " << verdict.text;
}

testing::AssertionResult VariantChecker::matches_reference(const Choice& choice) {
  const std::string name = choice.algorithm + " " + choice.config.print();
  try {
    return matches_reference(catalogue_.program(request_, target_, choice), name);
  } catch (const Error& error) {
    return testing::AssertionFailure() << request_.key() << "\n  " << name << ": " << error.what();
  }
}

testing::AssertionResult VariantChecker::matches_reference(const Program& program, const std::string& name) {
  try {
    if (testing::AssertionResult prepared = prepare(); !prepared) return prepared;
    const tuner::Verdict verdict = checker_->check(load(program));
    if (verdict.passed) return testing::AssertionSuccess() << verdict.text;
    return testing::AssertionFailure() << request_.key() << "\n  " << name << ": " << verdict.text;
  } catch (const std::exception& error) {
    return testing::AssertionFailure() << request_.key() << "\n  " << name << ": " << error.what();
  }
}

testing::AssertionResult matches_reference(const Catalogue& catalogue, const Request& request, const Choice& choice,
                                           tuner::CheckOptions options) {
  return VariantChecker(catalogue, request, std::move(options)).matches_reference(choice);
}

}  // namespace kiln::testing_support
