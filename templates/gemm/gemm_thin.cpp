#include <algorithm>

#include "conv/conv_estimate.h"
#include "conv/conv_parts.h"
#include "descriptor/streaming_estimate.h"
#include "kiln/generator/algorithm.h"

namespace kiln {
namespace {

using descriptor::ConvParts;
using descriptor::ConvProblem;
namespace dimension = descriptor::dimension;

struct Shape {
  int warps, vector, share;
};

constexpr int64_t most_rows = 8;

bool thin_is_m(const ConvProblem& conv) {
  return conv.pixels_per_image() <= conv.k();
}
const TensorSpec& thin(const ConvProblem& conv) {
  return thin_is_m(conv) ? conv.x : conv.w;
}
const TensorSpec& wide(const ConvProblem& conv) {
  return thin_is_m(conv) ? conv.w : conv.x;
}
// The dimension of an operand's rows or columns that is not K.
size_t line_dimension(const TensorSpec& spec, const ConvProblem& conv) {
  return &spec == &conv.w ? dimension::batch : dimension::column;
}
int64_t rows_of(const ConvProblem& conv) {
  return std::min(conv.pixels_per_image(), conv.k());
}
int64_t lines_of(const ConvProblem& conv) {
  return std::max(conv.pixels_per_image(), conv.k());
}

// Whether neighbours along K stand closer together in the wide operand than neighbouring lines.
bool along_k(const ConvProblem& conv) {
  const TensorSpec& spec = wide(conv);
  const int64_t line = spec.strides[line_dimension(spec, conv)], k = spec.strides[dimension::channel];
  return lines_of(conv) == 1 || (conv.c() > 1 && k <= line);
}

// The widest access of the wide operand in the direction of the lanes.
int widest(const ConvProblem& conv) {
  const TensorSpec& spec = wide(conv);
  if (along_k(conv)) return descriptor::widest_vector(spec, {dimension::channel}, conv.c());
  return descriptor::widest_vector(spec, {static_cast<int>(line_dimension(spec, conv))}, lines_of(conv));
}

int64_t block_lines(const Shape& shape, const ConvProblem& conv) {
  return along_k(conv) ? shape.warps / shape.share : int64_t{32} * shape.vector;
}

int64_t blocks(const Shape& shape, const ConvProblem& conv) {
  return (lines_of(conv) + block_lines(shape, conv) - 1) / block_lines(shape, conv);
}

std::optional<std::string> refusal(const ConvProblem& conv) {
  if (conv.dynamic_batch) return "M is dynamic";
  if (rows_of(conv) > most_rows) return "neither M nor N is at most 8";
  if (conv.products() > 65535) return "there are more than 65535 products";
  return std::nullopt;
}

bool warps_share_lines(const Shape& shape, const ConvProblem& conv, const Target&) {
  return along_k(conv) ? shape.warps % shape.share == 0 && (shape.share == 1 || conv.c() > 128)
                       : shape.share == shape.warps;
}

bool parts_fit(const Shape& shape, const ConvProblem& conv, const Target& target) {
  return rows_of(conv) * shape.share * block_lines(shape, conv) * 4 <= target.arch.shared_per_block_default;
}

Program program(const Shape& shape, const ConvProblem& conv, const Emitter& emit) {
  Prelude prelude = descriptor::conv_prelude(conv);
  const bool thin_vector =
      along_k(conv) && descriptor::widest_vector(thin(conv), {dimension::channel}, conv.c()) >= shape.vector;
  prelude.flag("THIN_IS_M", thin_is_m(conv)).flag("ALONG_K", along_k(conv)).flag("THIN_VECTOR", thin_vector);
  prelude.constant("WARPS", shape.warps).constant("VECTOR", shape.vector).constant("SHARE", shape.share);
  Launch launch = descriptor::conv_launch("gemm_thin", 32 * shape.warps);
  launch.grid[0] = Count{blocks(shape, conv)};
  launch.grid[2] = Count{conv.products()};
  return Program{{emit.source(prelude)}, {launch}};
}

Estimate predict(const Shape& shape, const ConvProblem& conv, const Target& target, const DeviceFigures& device) {
  const double rows = static_cast<double>(rows_of(conv)), products = static_cast<double>(conv.products());
  const double elements = static_cast<double>(lines_of(conv) * conv.c()) * products;
  const int64_t used = std::min<int64_t>(block_lines(shape, conv), lines_of(conv));
  descriptor::StreamingWork work;
  work.dram_bytes = descriptor::compulsory_bytes(conv);
  work.blocks = static_cast<double>(blocks(shape, conv)) * products;
  work.threads_per_block = 32.0 * shape.warps;
  const double idle = along_k(conv) ? 1 : static_cast<double>(block_lines(shape, conv)) / static_cast<double>(used);
  work.threads = work.blocks * work.threads_per_block / idle;
  const double loads = elements / work.threads / shape.vector;  // of a thread
  work.instructions_per_thread = 60 + loads * (3 + rows * (1 + 2 * shape.vector)) + rows * (along_k(conv) ? 12 : 4);
  const TensorSpec& spec = wide(conv);
  const size_t lane = along_k(conv) ? static_cast<size_t>(dimension::channel) : line_dimension(spec, conv);
  const double bytes = shape.vector * size_of(spec.dtype);
  work.cache_bytes = elements / shape.vector *
                     descriptor::lane_bytes(bytes, static_cast<double>(spec.strides[lane]) * bytes / shape.vector);
  work.registers_per_thread = 40 + rows * shape.vector;
  work.bytes_in_flight_per_thread = std::min(along_k(conv) ? 4.0 : 8.0, loads) * bytes;  // as loops are unrolled
  return descriptor::streaming_estimate(work, target.arch, device);
}

}  // namespace

Algorithm gemm_thin() {
  using namespace descriptor;
  return describe<Shape, ConvParts>("gemm_thin", "gemm", "gemm/gemm_thin.cu")
      .takes_prologue()
      .param("WARPS", &Shape::warps, {8, 4, 16})
      .param("VECTOR", &Shape::vector, {4, 8, 2, 1})
      .param("SHARE", &Shape::share, {1, 4, 8, 16})
      .applies([](const ConvParts& parts, const Target&) { return parts_refusal(parts, refusal); })
      .rule("the vector fits", for_main([](const Shape& shape, const ConvProblem& conv, const Target&) {
              return shape.vector <= widest(conv);
            }))
      .rule("warps share lines", for_main(warps_share_lines))
      .rule("sums fit into shared memory", for_main(parts_fit))
      .rule("the grid fits", for_main([](const Shape& shape, const ConvProblem& conv, const Target&) {
              return blocks(shape, conv) < (int64_t{1} << 31) - 1;
            }))
      .program([](const Shape& shape, const ConvParts& parts, const Target&, const Emitter& emit) {
        return with_operands_of(parts.list.front(), program(shape, parts.main(), emit));
      })
      .estimate([](const Shape& shape, const ConvParts& parts, const Target& target, const DeviceFigures& device) {
        return predict(shape, parts.main(), target, device);
      });
}

}  // namespace kiln
