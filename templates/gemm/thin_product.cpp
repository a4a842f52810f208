#include "gemm/thin_product.h"

#include <algorithm>

#include "contraction/block_estimate.h"
#include "descriptor/numbers.h"
#include "descriptor/prelude_and_launch.h"
#include "descriptor/streaming_estimate.h"
#include "gemm/gemm_contraction.h"
#include "kiln/generator/algorithm.h"

namespace kiln::descriptor {
namespace thin_product_descriptor {
namespace {

struct Shape {
  int warps, vector, share;
  int split = 1;  // blocks that share a line
};

constexpr int64_t most_thin_lines = 8;

// An operand as lines along K: the rows of a, or the columns of b.
struct Lines {
  const TensorSpec& operand;
  int dimension;  // in which the lines are counted
  int64_t count;

  int64_t stride() const { return operand.strides[static_cast<size_t>(dimension)]; }
  int64_t k_stride() const { return operand.strides[dimension::channel]; }
};

Lines rows_of(const Contraction& product) {
  return {product.addresses.x, dimension::column, product.rows()};
}
Lines columns_of(const Contraction& product) {
  return {product.addresses.w, dimension::batch, product.columns()};
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
  return widest_vector(lines.operand, {dimension::channel}, product.depth());
}

// The widest access of the wide operand in the direction of the lanes.
int widest(const Contraction& product) {
  const Lines lines = wide(product);
  if (along_k(product)) return widest_along_k(lines, product);
  return widest_vector(lines.operand, {lines.dimension}, lines.count);
}

int64_t block_lines(const Shape& shape, const Contraction& product) {
  return along_k(product) ? shape.warps / shape.share : int64_t{32} * shape.vector;
}

// Blocks side by side, each with its lines.
int64_t line_blocks(const Shape& shape, const Contraction& product) {
  return ceil_div(wide(product).count, block_lines(shape, product));
}

// Steps in which the warps of a line go along K.
int64_t steps(const Shape& shape, const Contraction& product) {
  return ceil_div(product.depth(), shape.share * (along_k(product) ? 32 * shape.vector : 1));
}

int64_t outputs(const Contraction& product) {
  return rows_of(product).count * columns_of(product).count;
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

// Splits pay where a device has SMs without a block, and each part has a few steps for itself.
bool splits_pay(const Shape& shape, const Contraction& product, const Target&) {
  constexpr int64_t many_blocks = 512, least_steps = 4;
  return line_blocks(shape, product) * product.products() * shape.split <= many_blocks &&
         steps(shape, product) >= least_steps * shape.split;
}

bool parts_fit(const Shape& shape, const Contraction& product, const Target& target) {
  return thin(product).count * shape.share * block_lines(shape, product) * 4 <= target.arch.shared_per_block_default;
}

Source source(const Shape& shape, const Contraction& product, const Emitter& emit) {
  Prelude prelude = contraction_prelude(product);
  const bool thin_vector = along_k(product) && widest_along_k(thin(product), product) >= shape.vector;
  prelude.flag("THIN_IS_M", thin_is_m(product)).flag("ALONG_K", along_k(product)).flag("THIN_VECTOR", thin_vector);
  prelude.constant("WARPS", shape.warps).constant("VECTOR", shape.vector).constant("SHARE", shape.share);
  prelude.constant("SPLIT_K", shape.split);
  return emit.source(prelude);
}

Program program(const Shape& shape, const Contraction& product, const Emitter& emit) {
  Launch launch = contraction_launch("gemm_thin", 32 * shape.warps);
  launch.grid = {Count{line_blocks(shape, product)}, Count{1}, Count{product.products()}};
  return program_of(source(shape, product, emit), launch);
}

Program split_program(const Shape& shape, const Contraction& product, const Emitter& emit) {
  const Count products{product.products()};
  const WorkspaceArgument parts{0, outputs(product) * product.products() * shape.split * 4};
  Launch sum = sums_launch("gemm_thin_splitk", 32 * shape.warps, {OperandArgument{"a"}, OperandArgument{"b"}, parts});
  sum.grid = {Count{line_blocks(shape, product)}, Count{shape.split}, products};
  Launch reduce = contraction_launch("gemm_thin_splitk_reduce", 32 * shape.warps, {parts, OperandArgument{"c"}});
  reduce.grid = {Count{ceil_div(outputs(product), shape.warps)}, Count{1}, products};
  Program result = program_of(source(shape, product, emit), sum);
  result.steps.emplace_back(std::move(reduce));
  return result;
}

Estimate predict(const Shape& shape, const Contraction& product, const Target& target, const DeviceFigures& device) {
  const Lines lines = wide(product);
  const double rows = static_cast<double>(thin(product).count), products = static_cast<double>(product.products());
  const double elements = static_cast<double>(lines.count * product.depth()) * products;
  const int64_t used = std::min<int64_t>(block_lines(shape, product), lines.count);
  StreamingWork work;
  work.dram_bytes = compulsory_bytes(product);
  work.blocks = static_cast<double>(line_blocks(shape, product)) * products * shape.split;
  work.threads_per_block = 32.0 * shape.warps;
  const double idle = static_cast<double>(block_lines(shape, product)) / static_cast<double>(used);
  work.threads = work.blocks * work.threads_per_block / idle;
  const double loads = elements / work.threads / shape.vector;  // of a thread
  const double prologues = thin_is_m(product) ? rows : 1;       // of each element that is loaded side by side
  work.instructions_per_thread =
      60 + loads * (3 + rows * (1 + 2 * shape.vector) + prologues * shape.vector * product.prologue_instructions) +
      rows * (along_k(product) ? 12 : 4);
  const auto lane_stride = static_cast<double>(along_k(product) ? lines.k_stride() : lines.stride());
  const double bytes = shape.vector * size_of(lines.operand.dtype);
  work.cache_bytes = elements / shape.vector * lane_bytes(bytes, lane_stride * bytes / shape.vector);
  work.registers_per_thread = 40 + rows * shape.vector;
  work.bytes_in_flight_per_thread = std::min(along_k(product) ? 4.0 : 8.0, loads) * bytes;  // as loops are unrolled
  Estimate estimate = streaming_estimate(work, target.arch, device);
  if (shape.split > 1) {
    const double add = launch_seconds(1, device);
    estimate.overhead += add;
    estimate.seconds += add;
  }
  return estimate;
}

// Parts of both descriptors.
Describe<Shape, Contractions> described(const std::string& name) {
  return describe<Shape>(name, "gemm", "gemm/" + name + ".cu", gemm_contractions)
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
              return std::max(line_blocks(shape, product), outputs(product)) < (int64_t{1} << 31) - 1;
            }));
}

Estimate predict_product(const Shape& shape, const Contractions& parts, const Target& target,
                         const DeviceFigures& device) {
  return predict(shape, parts.main(), target, device);
}

}  // namespace
}  // namespace thin_product_descriptor

Algorithm thin_product() {
  using namespace thin_product_descriptor;
  return described("gemm_thin")
      .program([](const Shape& shape, const Contractions& parts, const Target&, const Emitter& emit) {
        return with_names(parts.operands, program(shape, parts.main(), emit));
      })
      .estimate(predict_product);
}

Algorithm thin_product_splitk() {
  using namespace thin_product_descriptor;
  return described("gemm_thin_splitk")
      .param("SPLIT_K", &Shape::split, {16, 4, 64, 256})
      .rule("the parts fit into a gigabyte",
            for_main([](const Shape& shape, const Contraction& product, const Target&) {
              return outputs(product) * product.products() <= (int64_t{1} << 28) / shape.split;
            }))
      .pruning("splitting pays", for_main(splits_pay))
      .program([](const Shape& shape, const Contractions& parts, const Target&, const Emitter& emit) {
        return with_names(parts.operands, split_program(shape, parts.main(), emit));
      })
      .estimate(predict_product);
}

}  // namespace kiln::descriptor
