#include "user_code_cases.h"

#include "algorithm_cases.h"
#include "kiln/checking/trusted_program.h"
#include "variant_check.h"

namespace kiln::testing_support {

void expect_served_right(const std::string& line, const std::vector<std::string>& served_by, const Expressions& known) {
  SCOPED_TRACE(line);
  expect_defaults_match(Request::parse(line, known), served_by, TestDevice::get().target);
}

testing::AssertionResult check_as(const Request& request, const Request& made) {
  const TestDevice& device = TestDevice::get();
  const Catalogue& catalogue = built_in_catalogue();
  checking::Checker checker(device.context, request, thorough());
  const auto load = [&](const Program& program, const std::vector<std::string>& operands) {
    return device.load(program, device.target, operands);
  };
  const checking::Verdict trusted = checker.trust(
      load(checking::trusted_program(catalogue, request, device.target), checking::trusted_operand_names(request)));
  if (!trusted.passed) return testing::AssertionFailure() << "trusted: " << trusted.text;
  const Choice choice = catalogue.heuristic(made, device.target, device.figures);
  const checking::Verdict verdict =
      checker.check(load(catalogue.program(made, device.target, choice), checker.operand_names()));
  return verdict.passed ? testing::AssertionSuccess() : testing::AssertionFailure() << verdict.text;
}

}  // namespace kiln::testing_support
