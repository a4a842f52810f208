#include "user_oracle.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <span>

#include "kiln/checking/check.h"
#include "kiln/checking/trusted_program.h"
#include "kiln/generator/operation.h"
#include "kiln/reference/convert.h"
#include "kiln/reference/possible_indices.h"
#include "kiln/reference/prologue_slack.h"
#include "kiln/reference/tensor_memory.h"
#include "trusted_run.h"

namespace kiln::checking {
namespace {

using Memory = std::vector<std::byte>;

Memory bytes_of(const std::vector<float>& values) {
  const auto bytes = std::as_bytes(std::span(values));
  return {bytes.begin(), bytes.end()};
}

// The elements of `memory` as f32 in logical order of `like`: one each, one for all where the extent of `spec` is 1, or
// that of the channel, dimension `channel`.
Memory as_f32(const TensorSpec& like, TensorSpec spec, const Memory& memory, std::optional<size_t> channel) {
  if (channel) {
    const int64_t extent = spec.extents.front(), stride = spec.strides.front();
    spec.extents.assign(like.extents.size(), 1);
    spec.strides.assign(like.extents.size(), 0);
    spec.extents[*channel] = extent;
    spec.strides[*channel] = stride;
  }
  return bytes_of(reference::read_floats(like, spec, memory));
}

}  // namespace

UserOracle::UserOracle(const Request& request, const std::vector<Memory>& contents, const RunValues& values,
                       const CheckOptions& options)
    : input_(operation(request.operation).prologue_operand()),
      result_(result_of(request).name),
      output_(request.at(result_)),
      plain_(without_user_code(request)),
      values_(reference::values_without_user_code(request, values)),
      options_(options) {
  for (size_t i = 0; i < request.operands.size(); ++i) {
    const auto& [name, spec] = request.operands[i];
    const bool of_epilogue = is_epilogue_operand(name);
    std::optional<size_t> channel;
    if (of_epilogue && is_per_channel(request, spec)) channel = channel_dimension_of(request);
    if (is_written(request, name)) written_.push_back(name);
    memories_.push_back(name == input_ || name == result_ || of_epilogue
                            ? as_f32(name == input_ ? spec : output_, spec, contents[i], channel)
                            : contents[i]);
  }
  names_ = trusted_operand_names(request);
  memories_.resize(names_.size());
  for (const char* name : {"margin", "low", "high"}) memory(name) = Memory(memory(result_).size());
  if (!input_.empty()) {  // where there is no prologue, they stay as they are
    input_type_ = request.at(input_).dtype;
    memory("input") = memory(input_);
    memory("perturbation") = Memory(memory(input_).size());
  }
}

std::vector<std::byte>& UserOracle::memory(std::string_view name) {
  return memories_[static_cast<size_t>(std::find(names_.begin(), names_.end(), name) - names_.begin())];
}

// Operands as the reference reads them: the input holds the prologue's results.
reference::Bindings UserOracle::bindings() const {
  reference::Bindings bindings{.operands = {}, .values = values_, .input_type = input_type_};
  for (size_t i = 0; i < names_.size(); ++i) {
    if (plain_.find(names_[i]) != nullptr)
      bindings.operands[names_[i]] = names_[i] == input_ ? before_.at(input_) : memories_[i];
  }
  return bindings;
}

// Distances that the prologue's results may move, an element each; zeros without a prologue.
std::vector<float> UserOracle::perturbations() const {
  return floats_of(before_.at("perturbation"));
}

// Slacks of all outputs except those that name elements. The result's slack comes from the operation's own kernel,
// where that can compute it.
std::map<std::string, std::vector<float>> UserOracle::slacks(TrustedRun& device) const {
  if (input_.empty()) return {};
  const reference::Bindings bindings = this->bindings();
  const std::vector<float> perturbations = this->perturbations();
  const auto call = reference::slack_call(plain_, bindings.operands, perturbations, values_);
  std::vector<std::string> outputs = written_;
  std::erase_if(outputs, [&](const std::string& output) {
    return names_elements(plain_, output) || (call && output == result_);
  });
  auto slacks = reference::prologue_slack(plain_, outputs, bindings.operands, perturbations, values_);
  if (call) slacks[result_] = device.slack(*call, result_);
  return slacks;
}

Judge UserOracle::judge_of(const std::string& output) const {
  const auto known = slacks_.find(output);
  std::vector<float> slack = known == slacks_.end() ? std::vector<float>{} : known->second;
  for (float& distance : slack) distance *= 1 + 0x1p-10F;  // what moves brings errors of its own into sums
  const bool full = is_checked_in_full(plain_, options_);
  Judge judge(plain_, output, bindings(), full, options_.samples, options_.seed, std::move(slack));
  if (names_elements(plain_, output) && !input_.empty()) {
    judge.allow(reference::possible_indices(plain_, bindings().operands, perturbations()));
  }
  return judge;
}

Finding UserOracle::evaluate(const std::shared_ptr<const device::ContextHandle>& context,
                             const execution::Executable& trusted) {
  TrustedRun device(context, trusted, names_, memories_, plain_.batch());
  device.run_to_result(values_);
  for (const std::string& name : written_) before_[name] = device.get(name);
  if (!input_.empty()) {
    before_[input_] = device.get(input_);
    before_["perturbation"] = device.get("perturbation");
  }
  const Judge judge(plain_, result_, bindings(), is_checked_in_full(plain_, options_), options_.samples, options_.seed);
  std::vector<float> margins = judge.margins();
  slacks_ = slacks(device);
  const auto slack = slacks_.extract(result_);
  for (size_t i = 0; slack && i < margins.size(); ++i) margins[i] += slack.mapped()[i];
  device.put(result_, before_.at(result_));
  device.put("margin", bytes_of(margins));
  device.run_bounds(values_);
  low_ = floats_of(device.get("low"));
  high_ = floats_of(device.get("high"));
  return judge.with_reference(before_.at(result_), output_.extents.front());
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
    const bool right = std::isnan(least) ? std::isnan(got) : got >= least && got <= most;
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

}  // namespace kiln::checking
