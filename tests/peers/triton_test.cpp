// PTX that Triton makes on the emulated device: it is right, and no check reports.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "kiln/base/error.h"
#include "kiln/device/launch.h"
#include "kiln/device/module.h"
#include "peer_kernels.h"
#include "variant_check.h"

namespace kiln::bench::triton_test {
namespace {

using cuda_abi::CUdeviceptr;
using testing_support::TestDevice;

// A kernel of triton_kernels.py. Parameters: addresses of the operands, integers, and scratch memory that none needs.
class TritonKernel {
 public:
  TritonKernel(const std::shared_ptr<const device::ContextHandle>& context, const TritonProgram& program)
      : description_(nlohmann::json::parse(program.description)),
        module_(context, program.ptx, program.name),
        kernel_(module_.function(description_["entry"])),
        request_(Request::parse(description_["request"].get<std::string>())) {}

  const Request& request() const { return request_; }

  checking::Checkable checkable() {
    return {[this](cuda_abi::CUstream stream, checking::Checkable::Operands operands, const RunValues&, int64_t,
                   CUdeviceptr) { run(stream, operands); },
            0};
  }

 private:
  void run(cuda_abi::CUstream stream, checking::Checkable::Operands operands) {
    std::vector<CUdeviceptr> addresses;
    for (const std::string name : description_["operands"]) {
      for (size_t i = 0; i < request_.operands.size(); ++i) {
        if (request_.operands[i].name == name) addresses.push_back(operands[i]);
      }
    }
    std::vector<int> integers = description_["integers"];
    CUdeviceptr scratch = 0;
    std::vector<void*> parameters;
    for (CUdeviceptr& address : addresses) parameters.push_back(&address);
    for (int& integer : integers) parameters.push_back(&integer);
    parameters.push_back(&scratch);
    const device::Current current(kernel_.context());
    device::launch(kernel_, {description_["grid"][0], description_["grid"][1]}, {description_["threads"]},
                   description_["shared_bytes"], stream, parameters.data());
  }

  nlohmann::json description_;
  device::Module module_;
  device::Function kernel_;
  Request request_;
};

TEST(Triton, IsRightAndSilent) {
  const std::vector<TritonProgram> programs = triton_programs();
  if (programs.empty()) GTEST_SKIP() << why_no_triton();
  for (const TritonProgram& program : programs) {
    SCOPED_TRACE(program.name);
    const int capability = nlohmann::json::parse(program.description)["capability"];
    const TestDevice* const device = TestDevice::find(Arch::of(capability / 10, capability % 10));
    ASSERT_NE(device, nullptr);
    TritonKernel kernel(device->context, program);
    checking::CheckOptions options = peer_options(kernel.request());
    ASSERT_TRUE(checking::is_checked_in_full(kernel.request(), options));
    const checking::Verdict verdict =
        checking::Checker(device->context, kernel.request(), options).check(kernel.checkable());
    EXPECT_TRUE(verdict.passed) << verdict.text;
  }
}

}  // namespace
}  // namespace kiln::bench::triton_test
