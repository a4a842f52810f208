#include "cutlass_source.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <string_view>

#include "cutlass_arguments.h"
#include "kiln/base/error.h"
#include "kiln/generator/operations/conv_backward_data.h"
#include "kiln/generator/operations/conv_backward_filter.h"
#include "kiln/generator/operations/conv_forward.h"
#include "kiln/generator/operations/gemm.h"

namespace kiln::bench {
namespace {

[[noreturn]] void refuse(std::string_view reason) {
  throw Error(ErrorCode::unsupported, fmt::format("CUTLASS has no kernel for this request: {}", reason));
}

// `tf32`: as factors of products.
std::string_view element_name(DType dtype) {
  switch (dtype) {
    case DType::f32:
      return "float";
    case DType::f16:
      return "cutlass::half_t";
    case DType::bf16:
      return "cutlass::bfloat16_t";
    case DType::i32:
      return "int32_t";
    case DType::i8:
      return "int8_t";
    case DType::u8:
      return "uint8_t";
    case DType::f8e4m3:
      return "cutlass::float_e4m3_t";
    case DType::f8e5m2:
      return "cutlass::float_e5m2_t";
  }
  return "";
}

std::string shape(const std::array<int, 3>& extents) {
  return fmt::format("{}, {}, {}", extents[0], extents[1], extents[2]);
}

int plain(int64_t number) {
  if (number < 0 || number > std::numeric_limits<int>::max()) refuse("a number beyond 31 bits");
  return static_cast<int>(number);
}

// Elements of the widest access, at most 16 bytes, that divides the number of elements in a row, and the strides of
// rows where there are several.
int alignment(const TensorSpec& spec, size_t innermost) {
  const int size = traits(spec.dtype).bytes;
  int elements = std::min(16, spec.alignment) / size;
  const auto fits = [&] {
    if (spec.extents[innermost] % elements != 0) return false;
    for (size_t i = 0; i < spec.extents.size(); ++i) {
      if (i != innermost && spec.extents[i] > 1 && spec.strides[i] % elements != 0) return false;
    }
    return true;
  };
  while (elements > 1 && !fits()) elements /= 2;
  return std::max(elements, 1);
}

struct Sides {
  const TensorSpec *a, *b, *c;
  std::array<int, 3> alignments;
};

// Orders of blocks, those of CUTLASS's generator: up to 8 or 4 tiles along n run side by side.
constexpr std::string_view product_swizzle = "gemm::threadblock::GemmIdentityThreadblockSwizzle<8>";
constexpr std::string_view convolution_swizzle = "gemm::threadblock::GemmIdentityThreadblockSwizzle<4>";
constexpr std::string_view strided_gradient_swizzle = "conv::threadblock::StridedDgradIdentityThreadblockSwizzle<1>";

// Parts of the prelude that every kernel has.
std::string common_prelude(const Arch& arch, const CutlassChoice& choice, const Sides& sides,
                           std::string_view swizzle) {
  const bool eight_bits = traits(sides.a->dtype).bytes == 1, integers = choice.sum == DType::i32;
  const bool fp8 = eight_bits && !integers;
  const std::string_view target = fp8 ? "Sm89" : arch.at_least(8, 0) ? "Sm80" : "Sm75";
  std::string text;
  const auto define = [&](std::string_view name, std::string_view value) {
    text += fmt::format("#define PEER_{} {}\n", name, value);
  };
  define("A", element_name(sides.a->dtype));
  define("B", element_name(sides.b->dtype));
  define("C", element_name(choice.parallel ? choice.sum : sides.c->dtype));
  define("SUM", element_name(choice.sum));
  define("SCALE", integers ? "int32_t" : "float");
  define("TARGET", fmt::format("cutlass::arch::{}", target));
  define("BLOCK", shape(choice.tile.block));
  define("WARP", shape(choice.tile.warp));
  define("INSTRUCTION", shape(choice.tile.instruction));
  define("STAGES", std::to_string(choice.tile.stages));
  define("OPERATOR", integers ? "cutlass::arch::OpMultiplyAddSaturate" : "cutlass::arch::OpMultiplyAdd");
  define("SWIZZLE", fmt::format("cutlass::{}", swizzle));
  define("ALIGN_A", std::to_string(sides.alignments[0]));
  define("ALIGN_B", std::to_string(sides.alignments[1]));
  define("ALIGN_C", std::to_string(choice.parallel ? std::min(sides.alignments[2], 4) : sides.alignments[2]));
  return text;
}

template <class Problem>
std::vector<std::byte> bytes_of(const Problem& problem) {
  std::vector<std::byte> bytes(sizeof problem);
  std::memcpy(bytes.data(), &problem, sizeof problem);
  return bytes;
}

size_t position(const Request& request, std::string_view operand) {
  for (size_t i = 0; i < request.operands.size(); ++i) {
    if (request.operands[i].name == operand) return i;
  }
  refuse(fmt::format("it has no operand {}", operand));
}

// Strides of a pixel, a row and an image of a tensor with channels innermost; of an extent of 1 as without gaps.
void set_strides(int (&strides)[3], const TensorSpec& spec) {
  if (spec.rank() != 4) refuse("it is not two-dimensional");
  if (spec.strides[1] != 1 && spec.extents[1] > 1) refuse("channels are not innermost");
  int64_t dense = spec.extents[1];
  size_t place = 0;
  for (const size_t dimension : {3, 2, 0}) {
    const int64_t extent = spec.extents[dimension], stride = extent > 1 ? spec.strides[dimension] : dense;
    strides[place++] = plain(stride);
    dense = stride * extent;
  }
}

// Pixels of results, and of dy for the gradient by the filter, are rows of a matrix with one stride.
void require_pixels_of_one_stride(const TensorSpec& spec, const int (&strides)[3]) {
  if (strides[1] != spec.extents[3] * strides[0] || strides[2] != spec.extents[2] * strides[1]) {
    refuse("there are gaps between rows of pixels");
  }
}

// Each filter of dw is a row of a matrix.
void require_filters_without_gaps(const TensorSpec& dw, const int (&strides)[3]) {
  if (strides[0] != dw.extents[1] || strides[1] != dw.extents[3] * strides[0]) refuse("filters have gaps");
}

// The tensors of a convolution, or of a gradient of one.
struct Tensors {
  const TensorSpec &x, &w, &y;

  const TensorSpec& named(std::string_view operand) const {
    if (operand == "w" || operand == "dw") return w;
    return operand == "x" || operand == "dx" ? x : y;
  }
};

template <class View>
CutlassConvolution extents_of(const View& view, const Tensors& tensors, const CutlassChoice& choice) {
  if (view.groups != 1) refuse("it has groups");
  if (view.mirrored) refuse("it mirrors the filter");
  CutlassConvolution problem{};
  set_strides(problem.input, tensors.x);
  set_strides(problem.filter, tensors.w);
  set_strides(problem.output, tensors.y);
  const WindowAxis rows = view.axis(0), columns = view.axis(1);
  problem.n = plain(tensors.x.extents[0]);
  problem.c = plain(tensors.x.extents[1]);
  problem.h = plain(rows.extent);
  problem.w = plain(columns.extent);
  problem.k = plain(tensors.y.extents[1]);
  problem.r = plain(rows.window);
  problem.s = plain(columns.window);
  problem.p = plain(rows.outputs);
  problem.q = plain(columns.outputs);
  problem.pad_h = plain(rows.pad_begin);
  problem.pad_w = plain(columns.pad_begin);
  problem.stride_h = plain(rows.stride);
  problem.stride_w = plain(columns.stride);
  problem.dilation_h = plain(rows.dilation);
  problem.dilation_w = plain(columns.dilation);
  problem.slices = choice.slices;
  problem.parallel = choice.parallel ? 1 : 0;
  return problem;
}

// `pass`: name of CUTLASS's template; `names`: operands in its order.
template <class View>
CutlassSource convolution(const Request& request, const View& view, const Tensors& tensors, std::string_view pass,
                          std::array<std::string_view, 3> names, const Arch& arch, const CutlassChoice& choice) {
  const CutlassConvolution problem = extents_of(view, tensors, choice);
  Sides sides{&tensors.named(names[0]), &tensors.named(names[1]), &tensors.named(names[2]), {}};
  sides.alignments = {alignment(*sides.a, 1), alignment(*sides.b, 1), alignment(*sides.c, 1)};
  const bool by_filter = sides.c == &tensors.w, gradient = sides.c == &tensors.x;
  if (by_filter) require_filters_without_gaps(tensors.w, problem.filter);
  if (gradient) {
    require_pixels_of_one_stride(tensors.x, problem.input);
  } else {
    require_pixels_of_one_stride(tensors.y, problem.output);
  }
  const bool strided = problem.stride_h > 1 || problem.stride_w > 1;
  if (strided && gradient && choice.slices > 1) refuse("a strided gradient cannot be split");
  std::string text =
      common_prelude(arch, choice, sides, strided && gradient ? strided_gradient_swizzle : convolution_swizzle);
  text += fmt::format("#define PEER_PASS {}\n#define PEER_ITERATOR {}\n#define PEER_STRIDES {}\n", pass,
                      choice.analytic ? "kAnalytic" : "kOptimized", gradient && !strided ? "kUnity" : "kStrided");
  if (choice.parallel) {
    text += fmt::format("#define PEER_RESULT {}\n#define PEER_ALIGN_RESULT {}\n", element_name(sides.c->dtype),
                        sides.alignments[2]);
  }
  text += "#include \"cutlass_convolution.cuh\"\n";
  CutlassSource source;
  source.text = text;
  source.problem = bytes_of(problem);
  source.operands = {position(request, names[0]), position(request, names[1]), position(request, names[2])};
  if (choice.parallel) {
    source.slice_bytes = static_cast<size_t>(sides.c->elements()) * static_cast<size_t>(choice.slices) * sizeof(float);
  }
  return source;
}

// The stride of a row of a row-major matrix, or of a column of a column-major one.
int leading_dimension(const TensorSpec& matrix, bool& is_column_major) {
  if (matrix.rank() != 2) refuse("it is a batch of products");
  is_column_major = matrix.strides[1] != 1 && matrix.strides[0] == 1;
  if (!is_column_major && matrix.strides[1] != 1) refuse("a matrix has gaps in both dimensions");
  return plain(matrix.strides[is_column_major ? 1 : 0]);
}

CutlassSource product(const Request& request, const Arch& arch, const CutlassChoice& choice) {
  if (choice.parallel) refuse("slices of products are added in turn");
  const Gemm view = Gemm::of(request);
  bool a_columns = false, b_columns = false, c_columns = false;
  CutlassProduct problem{};
  problem.a = leading_dimension(view.a, a_columns);
  problem.b = leading_dimension(view.b, b_columns);
  problem.c = leading_dimension(view.c, c_columns);
  if (c_columns) refuse("its result is column-major");
  problem.m = plain(view.m());
  problem.n = plain(view.n());
  problem.k = plain(view.k());
  problem.slices = choice.slices;
  Sides sides{&view.a, &view.b, &view.c, {}};
  sides.alignments = {alignment(view.a, a_columns ? 0 : 1), alignment(view.b, b_columns ? 0 : 1), alignment(view.c, 1)};
  std::string text = common_prelude(arch, choice, sides, product_swizzle);
  text += fmt::format("#define PEER_LAYOUT_A {}\n#define PEER_LAYOUT_B {}\n#include \"cutlass_product.cuh\"\n",
                      a_columns ? "ColumnMajor" : "RowMajor", b_columns ? "ColumnMajor" : "RowMajor");
  return {text, bytes_of(problem), {position(request, "a"), position(request, "b"), position(request, "c")}, 0};
}

}  // namespace

std::string CutlassChoice::print() const {
  const auto& [block, warp, instruction, stages] = tile;
  return fmt::format("{}x{}x{} {}x{}x{} m{}n{}k{} stages={} slices={}{} sum={}{}", block[0], block[1], block[2],
                     warp[0], warp[1], warp[2], instruction[0], instruction[1], instruction[2], stages, slices,
                     parallel ? " parallel" : "", traits(sum).name, analytic ? " analytic" : "");
}

CutlassSource cutlass_source(const Request& request, const Arch& arch, const CutlassChoice& choice) {
  if (!request.epilogue.empty() || request.user_code) refuse("it has an epilogue");
  if (request.dynamic_batch) refuse("its batch is dynamic");
  if (request.operation == "conv_forward") {
    const ConvForward view = ConvForward::of(request);
    return convolution(request, view, {view.x, view.w, view.y}, "DefaultConv2dFprop", {"x", "w", "y"}, arch, choice);
  }
  if (request.operation == "conv_backward_data") {
    const ConvBackwardData view = ConvBackwardData::of(request);
    return convolution(request, view, {view.dx, view.w, view.dy}, "DefaultConv2dDgrad", {"dy", "w", "dx"}, arch,
                       choice);
  }
  if (request.operation == "conv_backward_filter") {
    const ConvBackwardFilter view = ConvBackwardFilter::of(request);
    return convolution(request, view, {view.x, view.dw, view.dy}, "DefaultConv2dWgrad", {"dy", "x", "dw"}, arch,
                       choice);
  }
  if (request.operation == "gemm") return product(request, arch, choice);
  refuse(fmt::format("{} is neither a convolution nor a product", request.operation));
}

}  // namespace kiln::bench
