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

json description_of(const TritonProgram& program) {
  try {
    return json::parse(program.description);
  } catch (const json::exception& error) {
    throw Error(ErrorCode::parse_error, fmt::format("{} is no description: {}", program.name, error.what()));
  }
}

}  // namespace

std::vector<TritonProgram> triton_programs(const std::filesystem::path& folder) {
  std::vector<TritonProgram> programs;
  if (!std::filesystem::exists(folder)) return programs;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    std::filesystem::path path = entry.path();
    if (path.extension() != ".json") continue;
    const std::string description = content(path);
    const std::string ptx = content(path.replace_extension(".ptx"));
    programs.push_back({path.stem(), description, ptx, content(path.replace_extension(".cubin"))});
  }
  std::sort(programs.begin(), programs.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
  return programs;
}

TritonPeer::TritonPeer(std::shared_ptr<const device::ContextHandle> context, const TritonProgram& program)
    : module_(context, device::loadable_image(context->driver(), program.ptx, program.cubin), program.name),
      kernel_(module_.function(description_of(program).at("entry"))) {
  const json description = description_of(program);
  const auto task_of = [](const json& task) {
    return Task{Request::parse(task.at("request").get<std::string>()),
                task.at("integers"),
                {task.at("grid").at(0), task.at("grid").at(1)}};
  };
  operands_ = description.at("operands");
  threads_ = description.at("threads");
  shared_bytes_ = description.at("shared_bytes");
  has_scale_ = description.value("has_scale", false);
  if (shared_bytes_ > 48 << 10) kernel_.set_max_dynamic_shared(static_cast<int>(shared_bytes_));
  whole_ = task_of(description);
  smaller_ = description.contains("smaller") ? task_of(description["smaller"]) : whole_;
}

checking::Checkable TritonPeer::checkable_of(const Task& task) {
  return {[this, &task](cuda_abi::CUstream stream, checking::Checkable::Operands operands, const RunValues& values,
                        int64_t, CUdeviceptr) { run(task, stream, operands, values); },
          0};
}

void TritonPeer::run(const Task& task, cuda_abi::CUstream stream, checking::Checkable::Operands operands,
                     const RunValues& values) const {
  std::vector<CUdeviceptr> addresses;
  for (const std::string& name : operands_) {
    for (size_t i = 0; i < task.request.operands.size(); ++i) {
      if (task.request.operands[i].name == name) addresses.push_back(operands[i]);
    }
  }
  std::vector<int> integers = task.integers;
  float scale = values.operation_scalars[0];
  if (has_scale_ && scale == 0) {
    scale = 1 / std::sqrt(static_cast<float>(AttentionForward::of(task.request).depth()));
  }
  CUdeviceptr scratch = 0;
  std::vector<void*> parameters;
  for (CUdeviceptr& address : addresses) parameters.push_back(&address);
  for (int& integer : integers) parameters.push_back(&integer);
  if (has_scale_) parameters.push_back(&scale);
  parameters.push_back(&scratch);
  const device::Current current(kernel_.context());
  device::launch(kernel_, {task.grid[0], task.grid[1]}, {threads_}, shared_bytes_, stream, parameters.data());
}

}  // namespace kiln::bench
