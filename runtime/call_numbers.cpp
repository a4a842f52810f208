#include "call_numbers.h"

#include <fmt/format.h>

#include "kiln/base/error.h"

namespace kiln {

void CallNumbers::place(const Tensor& tensor, size_t number) {
  key_.add(tensor);
  places_[count_] = {&tensor, memory_range(tensor), number};
  std::construct_at(reinterpret_cast<Address*>(&addresses_[count_ * sizeof(Address)]), tensor);
  ++count_;
}

void CallNumbers::finish() {
  key_.add(present_ | flags_ << max_call_operands);
  const std::span<const Place> places(places_.data(), count_);
  for (const Place& output : places) {
    if (!is_written(output)) continue;
    for (const Place& other : places) {
      const bool seen = is_written(other) && other.number >= output.number;
      if (!seen && output.range.meets(other.range)) examine(output, other);
    }
  }
  if (workspace_.begin != workspace_.end) require_own_workspace();
}

void CallNumbers::stages(const Epilogue& epilogue) {
  int64_t stages = 0;
  for (int i = 0; i < epilogue.count(); ++i) stages |= (static_cast<int64_t>(epilogue.stage(i)) + 1) << (4 * i);
  key_.add(stages);
}

void CallNumbers::user_tensors(const Epilogue& epilogue, std::span<const Tensor> tensors) {
  code_ = epilogue.code();
  values_.scalars = epilogue.scalars();
  key_.add(int64_t{-1});
  for (const int64_t word : code_->digest_words()) key_.add(word);
  for (size_t i = 0; i < tensors.size(); ++i) place(tensors[i], shape_.operands.size() + i);
}

void CallNumbers::examine(const Place& output, const Place& other) const {
  const OperandShape& shape = shape_.operands[output.number];
  const bool may_be = other.number < shape_.operands.size() && (shape.may_be >> other.number & 1) != 0;
  if (may_be && is_same_view(*output.tensor, *other.tensor)) return;
  if (!share_elements(*output.tensor, *other.tensor)) return;
  throw Error(ErrorCode::invalid_argument,
              fmt::format("{}: the memory of {} and {} overlaps", shape_.operation->name(), shape.name, name_of(other)),
              "write the result elsewhere");
}

std::string_view CallNumbers::name_of(const Place& place) const {
  const size_t own = shape_.operands.size();
  return place.number < own ? shape_.operands[place.number].name
                            : std::string_view(code_->tensors()[place.number - own]);
}

// Kernels write the workspace before they have read the inputs.
void CallNumbers::require_own_workspace() const {
  for (const Place& place : std::span(places_.data(), count_)) {
    if (!place.range.meets(workspace_)) continue;
    throw Error(
        ErrorCode::invalid_argument,
        fmt::format("{}: the memory of the workspace and {} overlaps", shape_.operation->name(), name_of(place)),
        "give memory of its own");
  }
}

void CallNumbers::refuse_stages() const {
  throw Error(ErrorCode::invalid_argument, fmt::format("{} takes no epilogue of stages", shape_.operation->name()),
              "write their function as user code: expression(...)");
}

}  // namespace kiln
