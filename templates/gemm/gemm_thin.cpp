#include <algorithm>

#include "contraction/block_estimate.h"
#include "descriptor/numbers.h"
#include "descriptor/prelude_and_launch.h"
#include "descriptor/streaming_estimate.h"
#include "gemm/gemm_contraction.h"
#include "kiln/generator/algorithm.h"

namespace kiln {
namespace gemm_thin_descriptor {
namespace {

using descriptor::Contraction;
using descriptor::Contractions;

struct Shape {
  int warps, vector, share;
};

constexpr int64_t most_thin_lines = 8;

// An operand as lines along K: the rows of a, or the columns of b.
struct Lines {
  const TensorSpec& operand;
  int dimension;  // in which the lines are counted
  int64_t count;

  int64_t stride() const { return operand.strides[static_cast<size_t>(dimension)]; }
  int64_t k_stride() const { return operand.strides[descriptor::dimension::channel]; }
};

Lines rows_of(const Contraction& product) {
  return {product.addresses.x, descriptor::dimension::column, product.rows()};
}
Lines columns_of(const Contraction& product) {
  return {product.addresses.w, descriptor::dimension::batch, product.columns()};
}

bool thin_is_m(const Contraction& product) {
  return product.rows() <= product.columns();
}
Lines thin(const Contraction& product) {
  return thin_is_m(product) ? rows_of(product) : columns_of(product);
}
Lines wide(const Contraction& product) {
  return thin_is_m(product) ? columns_of(product) : rows_of(product);
}

// Whether neighbours along K stand closer together in the wide operand than neighbouring lines.
bool along_k(const Contraction& product) {
  const Lines lines = wide(product);
  return lines.count == 1 || (product.depth() > 1 && lines.k_stride() <= lines.stride());
}

// The widest access of an operand along K.
int widest_along_k(const Lines& lines, const Contraction& product) {
  return descriptor::widest_vector(lines.operand, {descriptor::dimension::channel}, product.depth());
}

// The widest access of the wide operand in the direction of the lanes.
int widest(const Contraction& product) {
  const Lines lines = wide(product);
  if (along_k(product)) return widest_along_k(lines, product);
  return descriptor::widest_vector(lines.operand, {lines.dimension}, lines.count);
}

int64_t block_lines(const Shape& shape, const Contraction& product) {
  return along_k(product) ? shape.warps / shape.share : int64_t{32} * shape.vector;
}

int64_t blocks(const Shape& shape, const Contraction& product) {
  return descriptor::ceil_div(wide(product).count, block_lines(shape, product));
}

std::optional<std::string> refusal(const Contraction& product) {
  if (product.dynamic_batch()) return "M is dynamic";
  if (thin(product).count > most_thin_lines) return "neither M nor N is at most 8";
  if (product.products() > most_blocks_in_y) return "there are more than 65535 products";
  return std::nullopt;
}

bool warps_share_lines(const Shape& shape, const Contraction& product, const Target&) {
  return along_k(product) ? shape.warps % shape.share == 0 && (shape.share == 1 || product.depth() > 128)
                          : shape.share == shape.warps;
}

bool parts_fit(const Shape& shape, const Contraction& product, const Target& target) {
  return thin(product).count * shape.share * block_lines(shape, product) * 4 <= target.arch.shared_per_block_default;
}

Program program(const Shape& shape, const Contraction& product, const Emitter& emit) {
  Prelude prelude = descriptor::contraction_prelude(product);
  const bool thin_vector = along_k(product) && widest_along_k(thin(product), product) >= shape.vector;
  prelude.flag("THIN_IS_M", thin_is_m(product)).flag("ALONG_K", along_k(product)).flag("THIN_VECTOR", thin_vector);
  prelude.constant("WARPS", shape.warps).constant("VECTOR", shape.vector).constant("SHARE", shape.share);
  Launch launch = descriptor::contraction_launch("gemm_thin", 32 * shape.warps);
  launch.grid[0] = Count{blocks(shape, product)};
  launch.grid[2] = Count{product.products()};
  return descriptor::program_of(emit.source(prelude), launch);
}

Estimate predict(const Shape& shape, const Contraction& product, const Target& target, const DeviceFigures& device) {
  const Lines lines = wide(product);
  const double rows = static_cast<double>(thin(product).count), products = static_cast<double>(product.products());
  const double elements = static_cast<double>(lines.count * product.depth()) * products;
  const int64_t used = std::min<int64_t>(block_lines(shape, product), lines.count);
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
  const auto lane_stride = static_cast<double>(along_k(product) ? lines.k_stride() : lines.stride());
  const double bytes = shape.vector * size_of(lines.operand.dtype);
  work.cache_bytes = elements / shape.vector * descriptor::lane_bytes(bytes, lane_stride * bytes / shape.vector);
  work.registers_per_thread = 40 + rows * shape.vector;
  work.bytes_in_flight_per_thread = std::min(along_k(product) ? 4.0 : 8.0, loads) * bytes;  // as loops are unrolled
  return descriptor::streaming_estimate(work, target.arch, device);
}

}  // namespace
}  // namespace gemm_thin_descriptor

Algorithm gemm_thin() {
  using namespace gemm_thin_descriptor;
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
