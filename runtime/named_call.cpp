#include "named_call.h"

#include <algorithm>
#include <string>
#include <vector>

namespace kiln {
namespace {

void refuse_overlaps(std::string_view operation, std::span<const CallTensor> tensors) {
  for (size_t i = 0; i < tensors.size(); ++i) {
    const CallTensor& output = tensors[i];
    if (!output.is_output || output.tensor == nullptr) continue;
    for (size_t j = 0; j < tensors.size(); ++j) {
      const CallTensor& other = tensors[j];
      if (i == j || other.tensor == nullptr || (other.is_output && j > i)) continue;
      const bool may_be = std::find(output.may_be.begin(), output.may_be.end(), other.name) != output.may_be.end();
      (may_be ? refuse_partial_overlap : refuse_overlap)(operation, *output.tensor, other.name, *other.tensor,
                                                         output.name);
    }
  }
}

}  // namespace

NamedCall::NamedCall(std::string_view operation, CallKind kind, std::span<const CallTensor> tensors)
    : key(static_cast<int64_t>(kind)) {
  refuse_overlaps(operation, tensors);
  int64_t present = 0;
  for (size_t i = 0; i < tensors.size(); ++i) present |= int64_t{tensors[i].tensor != nullptr} << i;
  key.add(present);
  for (const CallTensor& named : tensors) {
    if (named.tensor == nullptr) continue;
    key.add(*named.tensor);
    operands_.add(*named.tensor);
    if (named.is_output) outputs_[output_count_++] = {named.name, named.tensor};
  }
}

void NamedCall::add_user_tensors(std::string_view operation, const Epilogue& epilogue) {
  const std::vector<std::string>& names = epilogue.code()->tensors();
  for (size_t i = 0; i < names.size(); ++i) {
    const Tensor& tensor = epilogue.tensor(i);
    for (const Output& output : std::span(outputs_).first(output_count_)) {
      refuse_overlap(operation, *output.tensor, names[i], tensor, output.name);
    }
    operands_.add(tensor);
  }
}

}  // namespace kiln
