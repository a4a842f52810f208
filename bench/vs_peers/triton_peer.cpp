#include "triton_peer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <utility>

#include "kiln/base/error.h"
#include "kiln/device/image.h"
#include "kiln/device/launch.h"
#include "kiln/generator/operations/attention.h"

namespace kiln::bench {
namespace {

using cuda_abi::CUdeviceptr;
using nlohmann::json;

std::string content(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

TritonTask task_of(const json& task) {
  return {Request::parse(task.at("request").get<std::string>()), task.at("integers"), task.at("grid")};
}

TritonProgram program_of(std::filesystem::path path) {
  TritonProgram program;
  program.name = path.stem();
  try {
    const json description = json::parse(content(path));
    program.entry = description.at("entry");
    program.capability = description.value("capability", 0);
    program.operands = description.at("operands");
    program.threads = description.at("threads");
    program.shared_bytes = description.at("shared_bytes");
    program.has_scale = description.value("has_scale", false);
    program.whole = task_of(description);
    program.smaller = description.contains("smaller") ? task_of(description["smaller"]) : program.whole;
  } catch (const json::exception& error) {
    throw Error(ErrorCode::parse_error,
                fmt::format("{} describes no kernel of Triton: {}", path.string(), error.what()));
  }
  program.ptx = content(path.replace_extension(".ptx"));
  program.cubin = content(path.replace_extension(".cubin"));
  return program;
}

}  // namespace

std::vector<TritonProgram> triton_programs(const std::filesystem::path& folder) {
  std::vector<TritonProgram> programs;
  if (!std::filesystem::exists(folder)) return programs;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() == ".json") programs.push_back(program_of(entry.path()));
  }
  std::sort(programs.begin(), programs.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
  return programs;
}

TritonPeer::TritonPeer(std::shared_ptr<const device::ContextHandle> context, const TritonProgram& program)
    : program_(program),
      module_(context, device::loadable_image(context->driver(), program.ptx, program.cubin), program.name),
      kernel_(module_.function(program.entry)) {
  if (program.shared_bytes > 48 << 10) kernel_.set_max_dynamic_shared(static_cast<int>(program.shared_bytes));
}

checking::Checkable TritonPeer::checkable(const TritonTask& task) const {
  return {[this, &task](cuda_abi::CUstream stream, checking::Checkable::Operands operands, const RunValues& values,
                        int64_t, CUdeviceptr) { run(task, stream, operands, values); },
          0};
}

void TritonPeer::run(const TritonTask& task, cuda_abi::CUstream stream, checking::Checkable::Operands operands,
                     const RunValues& values) const {
  std::vector<CUdeviceptr> addresses;
  for (const std::string& name : program_.operands) {
    for (size_t i = 0; i < task.request.operands.size(); ++i) {
      if (task.request.operands[i].name == name) addresses.push_back(operands[i]);
    }
  }
  std::vector<int> integers = task.integers;
  float scale = values.operation_scalars[0];
  if (program_.has_scale && scale == 0) {
    scale = 1 / std::sqrt(static_cast<float>(AttentionForward::of(task.request).depth()));
  }
  CUdeviceptr scratch = 0;
  std::vector<void*> parameters;
  for (CUdeviceptr& address : addresses) parameters.push_back(&address);
  for (int& integer : integers) parameters.push_back(&integer);
  if (program_.has_scale) parameters.push_back(&scale);
  parameters.push_back(&scratch);
  const device::Current current(kernel_.context());
  device::launch(kernel_, {task.grid[0], task.grid[1]}, {program_.threads}, program_.shared_bytes, stream,
                 parameters.data());
}

}  // namespace kiln::bench
