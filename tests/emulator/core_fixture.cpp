#include "core_fixture.h"

namespace kiln::emulator::test {

Counters Module::launch(const std::string& kernel, Dim3 grid, Dim3 block, const Arguments& arguments,
                        uint32_t dynamic_shared) const {
  LaunchRequest r = request(kernel, grid, block, arguments);
  r.dynamic_shared_bytes = dynamic_shared;
  r.instruction_limit = 100'000'000;
  const LaunchOutcome outcome = run(r);
  EXPECT_FALSE(outcome.fault) << outcome.fault->report;
  return outcome.counters;
}

Fault Module::fault(const std::string& kernel, Dim3 grid, Dim3 block, const Arguments& arguments,
                    uint32_t dynamic_shared) const {
  LaunchRequest r = request(kernel, grid, block, arguments);
  r.dynamic_shared_bytes = dynamic_shared;
  r.instruction_limit = 1'000'000;
  const LaunchOutcome outcome = run(r);
  EXPECT_TRUE(outcome.fault) << "the launch should have failed";
  return outcome.fault.value_or(Fault{});
}

std::string ptx_kernel(const std::string& body, const std::string& parameters, const std::string& before) {
  return ".version 8.0\n.target sm_90\n.address_size 64\n" + before + "\n.visible .entry k(" + parameters +
         ")\n{\n.reg .b32 %r<32>;\n.reg .b64 %rd<32>;\n.reg .f32 %f<32>;\n.reg .f64 %fd<16>;\n.reg .b16 %h<16>;\n"
         ".reg .pred %p<16>;\n" +
         body + "\nret;\n}\n";
}

std::string load_error(const std::string& ptx) {
  try {
    load_program(ptx);
  } catch (const LoadError& error) {
    return error.what();
  }
  ADD_FAILURE() << "the module should not have loaded";
  return {};
}

}  // namespace kiln::emulator::test
