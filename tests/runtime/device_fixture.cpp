#include "device_fixture.h"

#include <array>
#include <filesystem>

#include "kiln/cache/database.h"
#include "kiln/device/device.h"
#include "kiln/execution/bundle.h"
#include "kiln/generator/operation.h"
#include "kiln/reference/fill.h"
#include "kiln/reference/tensor_memory.h"
#include "kiln/reference/tolerance.h"
#include "kiln/templates/catalogue.h"
#include "test_environment.h"

namespace kiln {

DeviceTest::DeviceTest()
    : device_(device::ContextHandle::acquire(
          device::Device(device::Driver::open({testing_support::test_environment().driver}), 0))),
      environment_(testing_support::test_environment()) {
  // Asked for from here on, so that nobody is told of it.
  if (device_->driver().is_emulated() && !environment_.driver) environment_.driver = "emulator";
}

ContextOptions DeviceTest::options_that_only_record(const std::string& file) const {
  std::filesystem::remove(file);
  const std::string bundle = testing::TempDir() + "kiln_without_kernels.kiln";
  execution::write_bundle(bundle, {}, "1", "13.0");
  ContextOptions recording = options();
  recording.environment->record = file;
  recording.environment->nvrtc = "/nonexistent/libnvrtc.so";
  recording.bundles = {bundle};
  return recording;
}

std::string DeviceTest::at_hand(const std::string& built, const std::string& carried) {
  if (std::filesystem::exists(built)) return built;
  return std::filesystem::read_symlink("/proc/self/exe").parent_path().parent_path() / carried;
}

ContextOptions DeviceTest::options() const {
  ContextOptions options;
  options.environment = environment_;
  options.announce = [](std::string_view message) { ADD_FAILURE() << "announced: " << message; };
  return options;
}

cache::DeviceEntry DeviceTest::entry() const {
  const device::DeviceInfo& info = device_->device().info();
  return {info.id(), info.name, info.cc_major, info.cc_minor, info.sms, info.emulated};
}

cache::Record DeviceTest::record(const Request& request, const ExplainedCandidate& candidate, double seconds) const {
  static const Catalogue catalogue = make_catalogue(embedded_sources());  // once: it takes a tenth of a second
  cache::Record record;
  record.request = request.key();
  record.device = entry().id;
  record.algorithm = candidate.algorithm;
  record.algorithm_digest = catalogue.digest(candidate.algorithm).value();
  record.config = candidate.config;
  record.outcome = std::string(cache::outcome::timed);
  record.kind = entry().emulated ? cache::TimeKind::modelled : cache::TimeKind::measured;
  record.seconds = seconds;
  record.driver_version = record.nvrtc_version = record.kiln_version = "1";
  record.source_digest = "0";
  record.created_ms = 1;
  return record;
}

ContextOptions DeviceTest::options_with_winner(const Request& request, const ExplainedCandidate& candidate) const {
  const testing::TestInfo& test = *testing::UnitTest::GetInstance()->current_test_info();
  ContextOptions result = options();
  result.cache = testing::TempDir() + "kiln_" + test.name() + ".db";
  std::filesystem::remove(*result.cache);
  auto database = cache::Database::open(*result.cache);
  database.put_device(entry());
  database.insert(std::array{record(request, candidate, 1e-9)});
  return result;
}

void* DeviceTest::upload(std::span<const std::byte> bytes) {
  buffers_.push_back(device::upload(device_, bytes));
  return reinterpret_cast<void*>(buffers_.back().address());
}

void DeviceTest::expect_right(const std::string& line, const std::function<void(std::map<std::string, void*>&)>& call,
                              float alpha, float beta) {
  const Request request = Request::parse(line);
  std::map<std::string, std::vector<std::byte>> host;
  std::map<std::string, void*> device;
  for (const Operand& operand : request.operands) {
    host[operand.name] = reference::filled(operand.spec, reference::Values::uniform, 7);
    device[operand.name] = upload(host[operand.name]);
  }
  call(device);
  reference::Bindings bindings;
  for (const auto& [name, memory] : host) bindings.operands[name] = memory;
  bindings.values.alpha = alpha;
  bindings.values.beta = beta;
  const Operand& result = result_of(request);
  const auto bytes = static_cast<size_t>(reference::byte_span(result.spec));
  const auto mismatch = reference::compare(request, bindings, download(device.at(result.name), bytes));
  EXPECT_FALSE(mismatch) << mismatch->text();
}

std::string DeviceTest::refusal_of(const std::function<void()>& call, ErrorCode code) {
  try {
    call();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), code);
    return error.what();
  }
  return "accepted";
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
