#include "tensor.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <span>
#include <string>
#include <vector>

#include "boundary.h"
#include "kiln/base/error.h"
#include "kiln/gemm.h"

namespace kiln::capi {
namespace {

DType dtype_of(kiln_dtype dtype, std::string_view function, std::string_view name) {
  const auto known = static_cast<DType>(dtype);
  if (is_dtype(known)) return known;
  throw Error(ErrorCode::invalid_argument, fmt::format("{}: the dtype of {} is {}", function, name, dtype),
              fmt::format("use one of {}", constants_of(DTypes::any)));
}

size_t rank_of(int32_t rank, std::string_view function, std::string_view name) {
  if (rank >= 1 && rank <= Tensor::max_rank) return static_cast<size_t>(rank);
  throw Error(ErrorCode::invalid_argument,
              fmt::format("{}: the rank of {} is {}, expected 1 to {}", function, name, rank, Tensor::max_rank));
}

}  // namespace

static_assert(Tensor::max_rank <= KILN_MAX_RANK);

std::string constants_of(DTypes dtypes) {
  std::vector<std::string> constants;
  for (const DType each : all_dtypes) {
    if (!dtypes.holds(each)) continue;
    std::string constant = fmt::format("KILN_{}", to_string(each));
    std::transform(constant.begin(), constant.end(), constant.begin(),
                   [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
    constants.push_back(std::move(constant));
  }
  return fmt::format("{}", fmt::join(constants, ", "));
}

Tensor tensor_of(const kiln_tensor* given, std::string_view function, std::string_view name) {
  require(given, function, name);
  const size_t rank = rank_of(given->rank, function, name);
  const DType dtype = dtype_of(given->dtype, function, name);
  try {
    return {given->data, dtype, std::span(given->extents, rank), std::span(given->strides, rank)};
  } catch (const Error& error) {  // which speaks of a tensor, and not of which
    throw Error(error.code(), fmt::format("{}: {}: {}", function, name, error.message()), error.hint());
  }
}

}  // namespace kiln::capi

using namespace kiln::capi;  // NOLINT(google-build-using-namespace): the C functions belong to this room

kiln_status kiln_tensor_packed(kiln_tensor* tensor, const void* data, kiln_dtype dtype, int32_t rank,
                               const int64_t* extents, const char* layout) {
  return guarded([&] {
    const char* const function = "kiln_tensor_packed";
    require(tensor, function, "tensor");
    require(extents, function, "extents");
    const kiln::Layout order = layout == nullptr ? kiln::contiguous : kiln::Layout{layout};
    const kiln::Tensor made(data, dtype_of(dtype, function, "tensor"),
                            std::span(extents, rank_of(rank, function, "tensor")), order);
    kiln_tensor result = {data, dtype, rank, {}, {}};
    for (int i = 0; i < rank; ++i) {
      result.extents[i] = made.extent(i);
      result.strides[i] = made.stride(i);
    }
    *tensor = result;
  });
}

kiln_status kiln_tensor_transposed(const kiln_tensor* matrix, kiln_tensor* result) {
  return guarded([&] {
    const char* const function = "kiln_tensor_transposed";
    const kiln::Tensor turned = kiln::transposed(tensor_of(matrix, function, "matrix"));
    require(result, function, "result");
    kiln_tensor view = {matrix->data, matrix->dtype, matrix->rank, {}, {}};
    for (int i = 0; i < turned.rank(); ++i) {
      view.extents[i] = turned.extent(i);
      view.strides[i] = turned.stride(i);
    }
    *result = view;
  });
}
