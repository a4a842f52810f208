#include "user_oracle.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <optional>
#include <span>

#include "kiln/device/memory.h"
#include "kiln/device/stream.h"
#include "kiln/generator/operation.h"
#include "kiln/reference/convert.h"
#include "kiln/reference/tensor_memory.h"
#include "kiln/tuner/check.h"

namespace kiln::tuner {
namespace {

using Memory = std::vector<std::byte>;

// The elements of `memory` as f32 in logical order of `like`: one each, or that of the channel, dimension `channel`.
Memory as_f32(const TensorSpec& like, const TensorSpec& spec, const Memory& memory, std::optional<size_t> channel) {
  Memory result(static_cast<size_t>(like.elements()) * sizeof(float));
  size_t at = 0;
  reference::for_each_coordinate(like, [&](std::span<const int64_t> coordinate) {
    const auto value =
        static_cast<float>(reference::read(spec, memory, channel ? coordinate.subspan(*channel, 1) : coordinate));
    std::memcpy(result.data() + at, &value, sizeof value);
    at += sizeof value;
  });
  return result;
}

Memory bytes_of(const std::vector<float>& values) {
  const auto bytes = std::as_bytes(std::span(values));
  return {bytes.begin(), bytes.end()};
}

std::vector<float> floats_of(const Memory& bytes) {
  std::vector<float> values(bytes.size() / sizeof(float));
  std::copy(bytes.begin(), bytes.end(), std::as_writable_bytes(std::span(values)).begin());
  return values;
}

Memory magnitudes(const TensorSpec& spec, Memory memory) {
  reference::for_each_coordinate(spec, [&](std::span<const int64_t> coordinate) {
    reference::write(spec, memory, coordinate, std::fabs(reference::read(spec, memory, coordinate)));
  });
  return memory;
}

}  // namespace

std::vector<std::string> trusted_operand_names(const Request& request) {
  std::vector<std::string> names;
  for (const Operand& operand : request.operands) names.push_back(operand.name);
  if (!request.user_epilogue) return names;
  names.insert(names.end(), {"room", "low", "high"});
  if (request.find("x") != nullptr) names.insert(names.end(), {"input", "wobble"});
  return names;
}

UserOracle::UserOracle(const Request& request, const std::vector<Memory>& contents, const RunValues& values,
                       const CheckOptions& options)
    : result_(result_of(request).name),
      output_(request.at(result_)),
      plain_(without_user_code(request)),
      values_(values),
      options_(options) {
  for (size_t i = 0; i < request.operands.size(); ++i) {
    const auto& [name, spec] = request.operands[i];
    const bool is_user = is_user_operand(name);
    std::optional<size_t> channel;
    if (is_user && is_per_channel(request, spec)) channel = channel_dimension_of(request);
    memories_.push_back(name == "x" || name == result_ || is_user
                            ? as_f32(name == "x" ? spec : output_, spec, contents[i], channel)
                            : contents[i]);
  }
  names_ = trusted_operand_names(request);
  memories_.resize(names_.size());
  for (const char* name : {"room", "low", "high"}) memory(name) = Memory(memory(result_).size());
  if (request.find("x") == nullptr) return;
  memory("input") = memory("x");
  memory("wobble") = Memory(memory("x").size());
}

std::vector<std::byte>& UserOracle::memory(std::string_view name) {
  return memories_[static_cast<size_t>(std::find(names_.begin(), names_.end(), name) - names_.begin())];
}

// Runs the program on copies of the memories; what the named operands hold afterwards.
std::vector<Memory> UserOracle::run(const std::shared_ptr<const device::ContextHandle>& context,
                                    const execution::Executable& trusted, const std::vector<std::string>& results) {
  std::vector<device::Buffer> buffers;
  std::vector<cuda_abi::CUdeviceptr> addresses;
  for (const Memory& content : memories_) {
    buffers.push_back(device::upload(context, content));
    addresses.push_back(buffers.back().address());
  }
  const device::Buffer workspace(context, static_cast<size_t>(trusted.workspace_bytes()));
  const device::Stream stream(context);
  trusted.run(stream.raw(), addresses, values_, plain_.batch(), workspace.address());
  stream.synchronize();
  std::vector<Memory> contents;
  for (const std::string& name : results) {
    const auto at = static_cast<size_t>(std::find(names_.begin(), names_.end(), name) - names_.begin());
    contents.push_back(device::download<std::byte>(*context, addresses[at], memories_[at].size()));
  }
  return contents;
}

// How far the result may move where the prologue's does: the operation of what those may be off, with magnitudes for
// weights. No loss for pooling: a maximum moves by at most the most that one of its elements does.
std::vector<float> UserOracle::slack(const Memory& wobble) const {
  const std::vector<float> moves = floats_of(wobble);
  const auto elements = static_cast<size_t>(output_.elements());
  if (std::all_of(moves.begin(), moves.end(), [](float move) { return move == 0; }))
    return std::vector<float>(elements);
  Request request = plain_;
  request.epilogue.clear();
  request.blend.beta = Scale::zero;
  std::erase_if(request.operands, [](const Operand& each) { return each.name == "bias" || each.name == "residual"; });
  std::map<std::string, Memory> contents = {{"x", wobble}};
  reference::Bindings bindings;
  bindings.alpha = std::fabs(values_.alpha);
  for (size_t i = 0; i < names_.size(); ++i) {
    const TensorSpec* spec = request.find(names_[i]);
    if (names_[i] == "w" && spec != nullptr) contents["w"] = magnitudes(*spec, memories_[i]);
  }
  for (const auto& [name, content] : contents) bindings.operands[name] = content;
  const bool full = is_checked_in_full(plain_, options_);
  return Judge(request, result_, bindings, full, options_.samples, options_.seed).magnitudes();
}

Finding UserOracle::evaluate(const std::shared_ptr<const device::ContextHandle>& context,
                             const execution::Executable& trusted) {
  const bool has_x = plain_.find("x") != nullptr;
  const std::vector<Memory> first =
      run(context, trusted, has_x ? std::vector<std::string>{result_, "x", "wobble"} : std::vector{result_});
  reference::Bindings bindings;
  bindings.alpha = values_.alpha;
  bindings.beta = values_.beta;
  bindings.scalars = values_.scalars;
  bindings.integers = values_.integers;
  for (size_t i = 0; i < names_.size(); ++i) {
    if (plain_.find(names_[i]) != nullptr) bindings.operands[names_[i]] = names_[i] == "x" ? first[1] : memories_[i];
  }
  const Judge judge(plain_, result_, bindings, is_checked_in_full(plain_, options_), options_.samples, options_.seed);
  std::vector<float> rooms = judge.rooms();
  if (has_x) {
    const std::vector<float> more = slack(first[2]);
    for (size_t i = 0; i < rooms.size(); ++i) rooms[i] += more[i];
  }
  memory("room") = bytes_of(rooms);
  const std::vector<Memory> second = run(context, trusted, {"low", "high"});
  low_ = floats_of(second[0]);
  high_ = floats_of(second[1]);
  return judge.with_reference(first[0], output_.extents.front());
}

Finding UserOracle::compare(std::span<const std::byte> output, int64_t n) const {
  Finding finding;
  TensorSpec part = output_;
  part.extents[0] = n;
  size_t at = 0;
  reference::for_each_coordinate(part, [&](std::span<const int64_t> coordinate) {
    const float low = low_[at], high = high_[at];
    ++at;
    const double got = reference::read(output_, output, coordinate);
    ++finding.checked;
    if (low > high) return;  // anything is right
    const double least = reference::round_to(output_.dtype, low), most = reference::round_to(output_.dtype, high);
    const bool right = std::isnan(low) ? std::isnan(got) : got >= least && got <= most;
    if (!right && finding.wrong.empty()) {
      finding.wrong = fmt::format("wrong at ({}): got {}, the user's code makes {} to {} of what is there",
                                  fmt::join(coordinate, ","), got, least, most);
    }
    const double bound = (most - least) / 2, error = std::abs(got - (least + bound));
    if (std::isfinite(error) && (finding.bound == 0 || error * finding.bound > finding.max_error * bound)) {
      finding.max_error = error;
      finding.bound = bound;
    }
  });
  return finding;
}

}  // namespace kiln::tuner
