#include "device_fixture.h"

#include "kiln/device/device.h"
#include "kiln/generator/operation.h"
#include "kiln/reference/fill.h"
#include "kiln/reference/tensor_memory.h"
#include "kiln/reference/tolerance.h"

namespace kiln {
namespace {

// A test never reads or writes the cache of the person who runs it.
Environment test_environment() {
  Environment environment = Environment::read();
  environment.cache = "off";
  environment.cache_home.clear();
  environment.pack_path.clear();
  environment.record.reset();
  return environment;
}

}  // namespace

DeviceTest::DeviceTest()
    : device_(device::ContextHandle::acquire(device::Device(device::Driver::open({test_environment().driver}), 0))),
      environment_(test_environment()) {}

ContextOptions DeviceTest::options() const {
  ContextOptions options;
  options.environment = environment_;
  options.announce = [](std::string_view message) { ADD_FAILURE() << "announced: " << message; };
  return options;
}

void* DeviceTest::upload(std::span<const std::byte> bytes) {
  buffers_.push_back(device::upload(device_, bytes));
  return reinterpret_cast<void*>(buffers_.back().address());
}

std::vector<std::byte> DeviceTest::download(const void* address, size_t bytes) const {
  device_->synchronize();
  return device::download<std::byte>(*device_, reinterpret_cast<cuda_abi::CUdeviceptr>(address), bytes);
}

void DeviceTest::expect_matches_reference(const Request& request, const Plan& plan) {
  std::vector<std::vector<std::byte>> memory;
  std::vector<Address> addresses;
  reference::Bindings bindings;
  const void* output = nullptr;
  for (const Operand& operand : request.operands) {
    const bool is_output = operand.name == "y";
    memory.push_back(is_output ? reference::poisoned(operand.spec)
                               : reference::filled(operand.spec, reference::Values::uniform, 7));
    addresses.emplace_back(upload(memory.back()));
    if (is_output) output = addresses.back().pointer;
  }
  for (size_t i = 0; i < memory.size(); ++i) bindings.operands[request.operands[i].name] = memory[i];
  void* workspace = nullptr;
  if (plan.workspace_bytes() > 0) {
    workspace = upload(std::vector<std::byte>(static_cast<size_t>(plan.workspace_bytes())));
  }
  plan.run(nullptr, addresses, workspace);
  const auto bytes = static_cast<size_t>(reference::byte_span(request.at("y")));
  const auto mismatch = reference::compare(request, bindings, download(output, bytes));
  EXPECT_FALSE(mismatch) << request.key() << " by " << plan.variant() << ": " << mismatch->text();
}

}  // namespace kiln
