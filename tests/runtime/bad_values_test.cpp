// For every member and function that reads a value (a tensor, an epilogue, a plan, a spec, an expression): what cannot
// be asked of it, and what the error says.
#include <limits>
#include <optional>
#include <utility>

#include "bad_arguments.h"
#include "kiln/epilogue.h"
#include "kiln/memory.h"
#include "kiln/plan.h"

namespace kiln::bad_values_test {
namespace {

constexpr int64_t most = std::numeric_limits<int64_t>::max();

TEST_F(BadArguments, OfTensorsThatAreRead) {
  const Tensor tensor = at(0, {2, 3});
  for (const int dimension : {-1, 2, 7, 99999999, std::numeric_limits<int>::min()}) {
    const std::string said = "dimension " + std::to_string(dimension) + " of a tensor of 2 dimensions";
    expect_refused({
        {"extent", [&] { (void)tensor.extent(dimension); }, said},
        {"stride", [&] { (void)tensor.stride(dimension); }, said},
    });
  }
}

TEST_F(BadArguments, OfEpiloguesThatAreRead) {
  const Tensor tensor = at(0, {4});
  const Epilogue none, code = expression("acc + t", {{"t", tensor}});
  const Tensor two[] = {tensor, tensor};
  expect_refused({
      {"stage: of none", [&] { (void)none.stage(0); }, "stage 0 of an epilogue of 0 stages"},
      {"stage: behind the last", [&] { (void)relu.stage(1); }, "stage 1 of an epilogue of 1 stages"},
      {"stage: negative", [&] { (void)relu.stage(-1); }, "stage -1 of"},
      {"stage: far away", [&] { (void)relu.stage(100000000); }, "stage 100000000 of"},
      {"tensor: of none", [&] { (void)none.tensor(0); }, "tensor 0 of an epilogue that reads 0 tensors"},
      {"tensor: behind the last", [&] { (void)code.tensor(1); }, "tensor 1 of an epilogue that reads 1 tensors"},
      {"with_tensors: no code", [&] { (void)relu.with_tensors({}); }, "an epilogue without user code"},
      {"with_tensors: too few", [&] { (void)code.with_tensors({}); }, "0 tensors are given, the user code reads 1"},
      {"with_tensors: too many", [&] { (void)code.with_tensors(two); }, "2 tensors are given, the user code reads 1"},
  });
}

TEST_F(BadArguments, OfObjectsThatWereMovedFrom) {
  Context from(options());
  Context to = std::move(from);
  DeviceMemory memory(to, 16);
  const DeviceMemory kept = std::move(memory);
  const Request request = Request::parse("softmax_forward x=f32:4x37");
  std::array<std::byte, 1> byte{};
  // NOLINTBEGIN(bugprone-use-after-move): that is what is tested
  expect_refused({
      {"Context::plan", [&] { from.plan(request); }, "this Context was moved from"},
      {"Context::prepare",
       [&] {
         from.prepare({&request, 1});
       },
       "this Context was moved from"},
      {"Context::wait_until_tuned", [&] { from.wait_until_tuned(); }, "this Context was moved from"},
      {"Context::explain", [&] { (void)from.explain(request); }, "this Context was moved from"},
      {"Context::device_description", [&] { (void)from.device_description(); }, "this Context was moved from"},
      {"Context::device_id", [&] { (void)from.device_id(); }, "this Context was moved from"},
      {"Context::impl, as every operation", [&] { (void)from.impl(); }, "this Context was moved from"},
      {"CurrentContext of such a Context", [&] { const CurrentContext current(from); }, "this Context was moved from"},
      {"DeviceMemory of such a Context", [&] { const DeviceMemory made(from, 16); }, "this Context was moved from"},
      {"DeviceMemory::data", [&] { (void)memory.data(); }, "this DeviceMemory was moved from"},
      {"DeviceMemory::size", [&] { (void)memory.size(); }, "this DeviceMemory was moved from"},
      {"DeviceMemory::upload", [&] { memory.upload(byte); }, "this DeviceMemory was moved from"},
      {"DeviceMemory::download", [&] { memory.download(byte); }, "this DeviceMemory was moved from"},
      {"a Plan of nothing", [] { const Plan plan(nullptr); }, "a plan of nothing"},
  });
  // Moving these copies them.
  Plan plan = to.plan(request);
  const Plan moved = std::move(plan);
  EXPECT_EQ(plan.variant(), moved.variant());
  Expression code("acc * 2");
  const Expression taken = std::move(code);
  EXPECT_EQ(code.text(), taken.text());
  // NOLINTEND(bugprone-use-after-move)
}

TEST_F(BadArguments, OfSpecsAndExpressions) {
  TensorSpec without;
  without.extents = {2, 3};
  const std::string strides = "a tensor has 0 strides for 2 extents";
  const Expression code("acc + t", {"t"});
  const std::string other(code.digest().rbegin(), code.digest().rend());
  Request nothing, no_operands, no_extents;
  no_operands.operation = no_extents.operation = "softmax_forward";
  no_extents.operands.resize(1);
  no_extents.operands[0].name = "x";
  expect_refused({
      {"TensorSpec::span", [&] { (void)without.span(); }, strides},
      {"TensorSpec::print", [&] { (void)without.print(); }, strides},
      {"TensorSpec::order", [&] { (void)without.order(); }, strides},
      {"TensorSpec::is_packed", [&] { (void)without.is_packed("nc"); }, strides},
      {"TensorSpec::canonicalise", [&] { without.canonicalise(); }, strides},
      {"user_operand_name: behind the last", [&] { (void)user_operand_name(code, 1); }, "tensor 1 of user code"},
      {"user_operand_name: far away", [&] { (void)user_operand_name(code, 99); },
       "tensor 99 of user code that reads 1"},
      {"batch_bucket: negative", [] { (void)batch_bucket(-1); }, "no bucket holds a batch of -1"},
      {"batch_bucket: more than any holds", [] { (void)batch_bucket(most); }, "no bucket holds a batch of 9223372036"},
      {"Request::batch: of no operation", [&] { (void)nothing.batch(); }, "unknown operation ''"},
      {"Request::batch: of no operands", [&] { (void)no_operands.batch(); }, "no operand says the batch"},
      {"Request::batch: of no extents", [&] { (void)no_extents.batch(); }, "no operand says the batch"},
      {"print_definition: no name", [&] { (void)print_definition("", code); }, "'' cannot be the name"},
      {"print_definition: two lines", [&] { (void)print_definition("a b\n", code); }, "'a b\n' cannot be the name"},
      {"print_definition: of another", [&] { (void)print_definition(other, code); }, "cannot be the name"},
  });
  EXPECT_EQ(batch_bucket(0), 1);
  EXPECT_EQ(batch_bucket(int64_t{1} << 62), int64_t{1} << 62);
}

}  // namespace
}  // namespace kiln::bad_values_test
