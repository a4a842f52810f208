#include <algorithm>

#include "contraction/block_estimate.h"
#include "descriptor/numbers.h"
#include "descriptor/streaming_estimate.h"
#include "gemm/gemm_contraction.h"
#include "kiln/generator/algorithm.h"

namespace kiln {
namespace {

using descriptor::Contraction;
using descriptor::Contractions;
namespace dimension = descriptor::dimension;

struct Shape {
  int warps, vector, share;
};

constexpr int64_t most_rows = 8;

bool thin_is_m(const Contraction& product) {
  return product.pixels_per_image() <= product.k();
}
const TensorSpec& thin(const Contraction& product) {
  return thin_is_m(product) ? product.x : product.w;
}
const TensorSpec& wide(const Contraction& product) {
  return thin_is_m(product) ? product.w : product.x;
}
// The dimension of an operand's rows or columns that is not K.
size_t line_dimension(const TensorSpec& spec, const Contraction& product) {
  return &spec == &product.w ? dimension::batch : dimension::column;
}
int64_t rows_of(const Contraction& product) {
  return std::min(product.pixels_per_image(), product.k());
}
int64_t lines_of(const Contraction& product) {
  return std::max(product.pixels_per_image(), product.k());
}

// Whether neighbours along K stand closer together in the wide operand than neighbouring lines.
bool along_k(const Contraction& product) {
  const TensorSpec& spec = wide(product);
  const int64_t line = spec.strides[line_dimension(spec, product)], k = spec.strides[dimension::channel];
  return lines_of(product) == 1 || (product.c() > 1 && k <= line);
}

// The widest access of the wide operand in the direction of the lanes.
int widest(const Contraction& product) {
  const TensorSpec& spec = wide(product);
  if (along_k(product)) return descriptor::widest_vector(spec, {dimension::channel}, product.c());
  return descriptor::widest_vector(spec, {static_cast<int>(line_dimension(spec, product))}, lines_of(product));
}

int64_t block_lines(const Shape& shape, const Contraction& product) {
  return along_k(product) ? shape.warps / shape.share : int64_t{32} * shape.vector;
}

int64_t blocks(const Shape& shape, const Contraction& product) {
  return descriptor::ceil_div(lines_of(product), block_lines(shape, product));
}

std::optional<std::string> refusal(const Contraction& product) {
  if (product.dynamic_batch) return "M is dynamic";
  if (rows_of(product) > most_rows) return "neither M nor N is at most 8";
  if (product.products() > most_blocks_in_y) return "there are more than 65535 products";
  return std::nullopt;
}

bool warps_share_lines(const Shape& shape, const Contraction& product, const Target&) {
  return along_k(product) ? shape.warps % shape.share == 0 && (shape.share == 1 || product.c() > 128)
                          : shape.share == shape.warps;
}

bool parts_fit(const Shape& shape, const Contraction& product, const Target& target) {
  return rows_of(product) * shape.share * block_lines(shape, product) * 4 <= target.arch.shared_per_block_default;
}

Program program(const Shape& shape, const Contraction& product, const Emitter& emit) {
  Prelude prelude = descriptor::contraction_prelude(product);
  const bool thin_vector =
      along_k(product) && descriptor::widest_vector(thin(product), {dimension::channel}, product.c()) >= shape.vector;
  prelude.flag("THIN_IS_M", thin_is_m(product)).flag("ALONG_K", along_k(product)).flag("THIN_VECTOR", thin_vector);
  prelude.constant("WARPS", shape.warps).constant("VECTOR", shape.vector).constant("SHARE", shape.share);
  Launch launch = descriptor::contraction_launch("gemm_thin", 32 * shape.warps);
  launch.grid[0] = Count{blocks(shape, product)};
  launch.grid[2] = Count{product.products()};
  return Program{{emit.source(prelude)}, {launch}};
}

Estimate predict(const Shape& shape, const Contraction& product, const Target& target, const DeviceFigures& device) {
  const double rows = static_cast<double>(rows_of(product)), products = static_cast<double>(product.products());
  const double elements = static_cast<double>(lines_of(product) * product.c()) * products;
  const int64_t used = std::min<int64_t>(block_lines(shape, product), lines_of(product));
  descriptor::StreamingWork work;
  work.dram_bytes = descriptor::compulsory_bytes(product);
  work.blocks = static_cast<double>(blocks(shape, product)) * products;
  work.threads_per_block = 32.0 * shape.warps;
  const double idle =
      along_k(product) ? 1 : static_cast<double>(block_lines(shape, product)) / static_cast<double>(used);
  work.threads = work.blocks * work.threads_per_block / idle;
  const double loads = elements / work.threads / shape.vector;  // of a thread
  const double prologues = thin_is_m(product) ? rows : 1;       // of each element that is loaded side by side
  work.instructions_per_thread =
      60 + loads * (3 + rows * (1 + 2 * shape.vector) + prologues * shape.vector * product.prologue_instructions) +
      rows * (along_k(product) ? 12 : 4);
  const TensorSpec& spec = wide(product);
  const size_t lane = along_k(product) ? static_cast<size_t>(dimension::channel) : line_dimension(spec, product);
  const double bytes = shape.vector * size_of(spec.dtype);
  work.cache_bytes = elements / shape.vector *
                     descriptor::lane_bytes(bytes, static_cast<double>(spec.strides[lane]) * bytes / shape.vector);
  work.registers_per_thread = 40 + rows * shape.vector;
  work.bytes_in_flight_per_thread = std::min(along_k(product) ? 4.0 : 8.0, loads) * bytes;  // as loops are unrolled
  return descriptor::streaming_estimate(work, target.arch, device);
}

}  // namespace

Algorithm gemm_thin() {
  using namespace descriptor;
  return describe<Shape>("gemm_thin", "gemm", "gemm/gemm_thin.cu", gemm_contractions)
      .takes_prologue()
      .param("WARPS", &Shape::warps, {8, 4, 16})
      .param("VECTOR", &Shape::vector, {4, 8, 2, 1})
      .param("SHARE", &Shape::share, {1, 4, 8, 16})
      .applies([](const Contractions& parts, const Target&) { return refusal_of(parts, refusal); })
      .rule("the vector fits", for_main([](const Shape& shape, const Contraction& product, const Target&) {
              return shape.vector <= widest(product);
            }))
      .rule("warps share lines", for_main(warps_share_lines))
      .rule("sums fit into shared memory", for_main(parts_fit))
      .rule("the grid fits", for_main([](const Shape& shape, const Contraction& product, const Target&) {
              return blocks(shape, product) < (int64_t{1} << 31) - 1;
            }))
      .program([](const Shape& shape, const Contractions& parts, const Target&, const Emitter& emit) {
        return with_names(parts.operands, program(shape, parts.main(), emit));
      })
      .estimate([](const Shape& shape, const Contractions& parts, const Target& target, const DeviceFigures& device) {
        return predict(shape, parts.main(), target, device);
      });
}

}  // namespace kiln
