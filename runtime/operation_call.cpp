#include "operation_call.h"

#include <fmt/format.h>

#include <algorithm>

#include "kiln/base/error.h"
#include "kiln/generator/operation.h"

namespace kiln {
namespace {

struct Range {
  uintptr_t begin, end;
};

Range range_of(const Tensor& tensor) {
  const auto begin = reinterpret_cast<uintptr_t>(tensor.data());
  if (tensor.empty()) return {begin, begin};
  int64_t last = 0;
  for (int i = 0; i < tensor.rank(); ++i) last += (tensor.extent(i) - 1) * tensor.stride(i);
  return {begin, begin + static_cast<uintptr_t>((last + 1) * size_of(tensor.dtype()))};
}

// What one dimension adds to the distance between an element of one tensor and one of another: stride * [least, most].
struct Term {
  int64_t stride, least, most;
};

// At most one for each dimension of each tensor; those of equal strides are one.
struct Terms {
  std::array<Term, 2 * Tensor::max_rank> list;
  size_t count = 0;

  void add(const Term& term) {
    if (term.stride == 0 || term.least == term.most) return;
    Term* const end = list.data() + count;
    Term* const same = std::find_if(list.data(), end, [&](const Term& t) { return t.stride == term.stride; });
    if (same == end) {
      list[count++] = term;
    } else {
      same->least += term.least;
      same->most += term.most;
    }
  }
};

// Whether the terms can add up to `distance`. Their strides fall: where they nest, as those of two regions of one
// tensor do, a dimension has few candidates. Gives up after `budget` steps and says yes.
bool can_reach(std::span<const Term> terms, int64_t distance, int& budget) {
  if (terms.empty()) return distance == 0;
  const Term& outer = terms.front();
  int64_t least = 0, most = 0;
  for (const Term& inner : terms.subspan(1)) {
    least += inner.stride * inner.least;
    most += inner.stride * inner.most;
  }
  // Rounding towards zero may add a candidate at either end, never lose one.
  const int64_t from = std::max(outer.least, (distance - most) / outer.stride);
  const int64_t to = std::min(outer.most, (distance - least) / outer.stride);
  for (int64_t i = from; i <= to; ++i) {
    if (--budget < 0 || can_reach(terms.subspan(1), distance - i * outer.stride, budget)) return true;
  }
  return false;
}

// Whether an element of `a` is one of `b`, whose ranges of memory overlap. Exact for regions of one tensor (channels
// y[..., 0:8] and x[..., 8:16], say); yes where it would take long to find out.
bool share_elements(const Tensor& a, const Tensor& b) {
  const int64_t size = size_of(a.dtype());
  const auto bytes =
      static_cast<int64_t>(reinterpret_cast<uintptr_t>(b.data()) - reinterpret_cast<uintptr_t>(a.data()));
  if (size_of(b.dtype()) != size || bytes % size != 0) return true;
  Terms terms;
  for (int i = 0; i < a.rank(); ++i) terms.add({a.stride(i), 0, a.extent(i) - 1});
  for (int i = 0; i < b.rank(); ++i) terms.add({b.stride(i), 1 - b.extent(i), 0});
  const std::span<Term> list(terms.list.data(), terms.count);
  std::sort(list.begin(), list.end(), [](const Term& p, const Term& q) { return p.stride > q.stride; });
  if (!list.empty() && list.back().stride < 0) return true;  // no request has negative strides
  int budget = 1000;
  return can_reach(list, bytes / size, budget);
}

// Whether two tensors are the same elements at the same positions.
bool is_same_view(const Tensor& a, const Tensor& b) {
  if (a.data() != b.data() || a.dtype() != b.dtype() || a.rank() != b.rank()) return false;
  for (int i = 0; i < a.rank(); ++i) {
    if (a.extent(i) != b.extent(i) || (a.extent(i) > 1 && a.stride(i) != b.stride(i))) return false;
  }
  return true;
}

}  // namespace

void refuse_overlap(std::string_view operation, const Tensor& y, std::string_view name, const Tensor& other,
                    std::string_view output) {
  const Range a = range_of(y), b = range_of(other);
  if (a.begin >= b.end || b.begin >= a.end || !share_elements(y, other)) return;
  throw Error(ErrorCode::invalid_argument, fmt::format("{}: the memory of {} and {} overlaps", operation, output, name),
              "write the result elsewhere");
}

void refuse_partial_overlap(std::string_view operation, const Tensor& y, std::string_view name, const Tensor& other,
                            std::string_view output) {
  if (!is_same_view(y, other)) refuse_overlap(operation, y, name, other, output);
}

void refuse_stages(std::string_view operation, const Epilogue& epilogue) {
  if (epilogue.count() == 0) return;
  throw Error(ErrorCode::invalid_argument, fmt::format("{} takes no epilogue of stages", operation),
              "write what they do as user code: expression(...)");
}

Request with_user_code(Request request, const Tensor& y, const Epilogue& epilogue) {
  if (!epilogue.code()) return request;
  const Expression& code = *epilogue.code();
  std::vector<TensorSpec> tensors;
  for (size_t i = 0; i < code.tensors().size(); ++i) {
    const Tensor& tensor = epilogue.tensor(i);
    // The request of a dynamic batch knows the top of its bucket only.
    if (tensor.rank() == y.rank() && tensor.extent(0) != y.extent(0) && tensor.extent(0) != 1) {
      throw Error(
          ErrorCode::invalid_argument,
          fmt::format("{}: {} has other extents than {}: {} along the first dimension, not {}", request.operation,
                      code.tensors()[i], result_of(request).name, tensor.extent(0), y.extent(0)),
          "give it that extent, or 1 where it repeats");
    }
    tensors.push_back(tensor.spec());
  }
  return with_user_code(std::move(request), code, tensors);
}

void require_tensor(std::string_view operation, EpilogueStage stage, const std::optional<Tensor>& tensor) {
  if (tensor) return;
  throw Error(ErrorCode::invalid_argument,
              fmt::format("{}: the epilogue stage {} has no tensor", operation, to_string(stage)),
              "write kiln::bias(values) or kiln::add(residual)");
}

void CallOperands::add_epilogue(std::string_view operation, const Tensor& y, const Epilogue& epilogue,
                                std::string_view output) {
  if (epilogue.bias()) {
    refuse_overlap(operation, y, "bias", *epilogue.bias(), output);
    add(*epilogue.bias());
  }
  if (epilogue.residual()) {
    refuse_partial_overlap(operation, y, "residual", *epilogue.residual(), output);
    add(*epilogue.residual());
  }
  add_user_code(operation, y, epilogue, output);
}

void CallOperands::add_user_code(std::string_view operation, const Tensor& y, const Epilogue& epilogue,
                                 std::string_view output) {
  if (!epilogue.code()) return;
  for (size_t i = 0; i < epilogue.code()->tensors().size(); ++i) {
    refuse_overlap(operation, y, epilogue.code()->tensors()[i], epilogue.tensor(i), output);
    add(epilogue.tensor(i));
  }
}

}  // namespace kiln
