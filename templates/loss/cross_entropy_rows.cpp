#include "loss/cross_entropy_rows.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "descriptor/numbers.h"
#include "descriptor/prelude_and_launch.h"
#include "descriptor/strided.h"

namespace kiln::descriptor {
namespace {

constexpr int count_threads = 256, count_blocks = 64;  // of the kernels that see all rows

// `spec`, which has an element a row, with as many dimensions as x.
TensorSpec by_row(TensorSpec spec) {
  spec.extents.insert(spec.extents.begin() + 1, 1);
  spec.strides.insert(spec.strides.begin() + 1, 0);
  return spec;
}

// `spec`, which has one element, with as many dimensions as x.
TensorSpec for_all_rows(const TensorSpec& spec, const TensorSpec& x) {
  return {spec.dtype, std::vector<int64_t>(x.extents.size(), 1), std::vector<int64_t>(x.extents.size(), 0),
          spec.alignment};
}

int reduction_code(LossReduction reduction) {
  switch (reduction) {
    case LossReduction::none:
      return 0;
    case LossReduction::mean:
      return 1;
    case LossReduction::sum:
      return 2;
  }
  return 0;
}

void add_rows(Prelude& prelude, const CrossEntropyRows& rows) {
  add_simple_rows(prelude, rows);
  prelude.constant("AXIS", rows.axes.front());
  prelude.constant("REDUCTION", reduction_code(rows.reduction)).constant("IGNORE", rows.ignore);
  prelude.constant("COUNT_THREADS", count_threads).constant("COUNT_BLOCKS", count_blocks);
  prelude.flag("HAS_WEIGHTS", rows.weights.has_value()).flag("SMOOTHS", rows.smooths);
  prelude.constant("WEIGHTS_STRIDE", rows.weights ? rows.weights->strides.front() : 0);
  if (rows.is_backward) prelude.flag("HAS_DLOSS", rows.has_dloss);
  add_blend(prelude, rows.blend);
}

Launch launch_of(std::string entry, int threads, const Count& blocks, std::vector<Argument> arguments) {
  Launch launch = descriptor::launch_of(std::move(entry), threads, std::move(arguments));
  launch.grid[0] = blocks;
  return launch;
}

}  // namespace

CrossEntropyRows CrossEntropyRows::of(const Request& request) {
  CrossEntropyRows rows;
  const TensorSpec& x = request.at("x");
  const auto take = [&](const CrossEntropy& view) {
    rows.reduction = view.reduction;
    rows.weights = view.weights;
    rows.smooths = view.smooths;
    rows.ignore = view.ignore;
    rows.blend = view.blend;
    rows.dynamic_batch = view.dynamic_batch;
    rows.operands = {{"x", x}, {"targets", by_row(view.targets)}};
  };
  rows.axes = {1};
  rows.kept_bytes = kept_bytes_of(request, "x");
  rows.is_backward = request.operation == "cross_entropy_backward";
  if (rows.is_backward) {
    const CrossEntropyBackward view = CrossEntropyBackward::of(request);
    take(view);
    rows.loss_name = rows.is_reduced() ? "dloss" : "dlosses";
    rows.has_dloss = view.dloss.has_value();
    const bool one_each = rows.has_dloss && !rows.is_reduced();
    rows.operands.push_back(
        {"dloss", one_each ? by_row(*view.dloss) : for_all_rows(view.dloss.value_or(TensorSpec{}), x)});
    rows.operands.push_back({"dx", view.dx});
  } else {
    const CrossEntropyForward view = CrossEntropyForward::of(request);
    take(view);
    rows.loss_name = rows.is_reduced() ? "loss" : "losses";
    rows.operands.push_back({"loss", rows.is_reduced() ? for_all_rows(view.loss, x) : by_row(view.loss)});
  }
  return rows;
}

double CrossEntropyRows::compulsory_bytes() const {
  double bytes = static_cast<double>(count()) * 4;  // targets
  bytes += static_cast<double>(elements()) * logit_bytes();
  if (is_backward) {
    bytes += static_cast<double>(elements()) * size_of(result().dtype) * (blend.beta == Scale::zero ? 1 : 2);
  }
  if (weights) bytes += static_cast<double>(length()) * 4;
  return bytes + (is_reduced() ? 0 : static_cast<double>(count()) * 4);
}

Prelude cross_entropy_prelude(const CrossEntropyRows& rows) {
  Prelude prelude = rows_prelude(rows);
  add_rows(prelude, rows);
  return prelude;
}

Prelude cross_entropy_prelude(const CrossEntropyRows& rows, const RowLayout& layout, int vector, const Emitter& emit) {
  Prelude prelude = rows_prelude(rows, layout, vector, emit);
  add_rows(prelude, rows);
  prelude.constant("WEIGHTS_RUN", rows.weights ? widest_vector(*rows.weights, {0}, vector) : 1);
  return prelude;
}

Program cross_entropy_program(const CrossEntropyRows& rows, const std::string& entry, int threads, const Count& blocks,
                              Source source) {
  const OperandArgument x{"x"}, targets{"targets"}, weights{"weights"}, loss{rows.loss_name};
  const UserArgument user{};
  const OperationScalar smoothing{0};
  const int64_t scratch_bytes = rows.is_backward    ? (rows.is_mean() ? int64_t{count_blocks} * 4 : 0)
                                : rows.is_reduced() ? blocks.at(rows.extents().front()) * 8
                                                    : 0;
  const WorkspaceArgument scratch{0, scratch_bytes};
  Program program{{std::move(source)}, {}};
  if (rows.is_backward) {
    if (rows.is_mean()) {
      program.steps.emplace_back(
          launch_of(entry + "_count", count_threads, Count{count_blocks}, {targets, weights, scratch, Scalar::n}));
    }
    program.steps.emplace_back(launch_of(entry, threads, blocks,
                                         {x, targets, weights, loss, OperandArgument{"dx"}, scratch, Scalar::alpha,
                                          Scalar::beta, user, smoothing, Scalar::n}));
    return program;
  }
  program.steps.emplace_back(
      launch_of(entry, threads, blocks,
                {x, targets, weights, loss, scratch, Scalar::alpha, Scalar::beta, user, smoothing, Scalar::n}));
  if (rows.is_reduced()) {
    program.steps.emplace_back(launch_of(entry + "_reduce", count_threads, Count{1},
                                         {scratch, loss, Scalar::alpha, Scalar::beta, user, Scalar::n}));
  }
  return program;
}

Count blocks_across(const CrossEntropyRows& rows, const RowLayout& layout, int threads) {
  const int64_t slices = ceil_div(layout.inner.extent, threads);
  Count blocks = blocks_for_rows(rows, layout.inner.extent);  // one for each outer index
  blocks.fixed *= slices;
  blocks.per_n *= slices;
  return blocks;
}

StreamingWork cross_entropy_work(const CrossEntropyRows& rows, int threads) {
  StreamingWork work;
  work.dram_bytes = rows.compulsory_bytes();
  work.threads_per_block = threads;
  work.registers_per_thread = 40;
  work.launches = rows.is_backward ? (rows.is_mean() ? 2 : 1) : (rows.is_reduced() ? 2 : 1);
  return work;
}

}  // namespace kiln::descriptor
