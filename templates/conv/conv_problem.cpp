#include "conv/conv_problem.h"

#include <algorithm>
#include <array>
#include <utility>

#include "descriptor/parts.h"
#include "kiln/base/error.h"

namespace kiln::descriptor {
namespace {

// The codes of lib/epilogue.cuh.
int64_t stage_code(EpilogueStage stage) {
  switch (stage) {
    case EpilogueStage::bias:
      return 1;
    case EpilogueStage::add:
      return 2;
    case EpilogueStage::relu:
      return 3;
    case EpilogueStage::clip:
      return 4;
  }
  return 0;
}

void add_epilogue(Prelude& prelude, const ConvProblem& conv) {
  std::vector<int64_t> codes;
  for (const EpilogueStage stage : conv.epilogue) codes.push_back(stage_code(stage));
  prelude.constant("EPILOGUE_STAGES", static_cast<int64_t>(codes.size()));
  if (codes.empty()) codes.push_back(0);
  prelude.array("EPILOGUE", codes);
  prelude.type("TBias", conv.bias ? conv.bias->dtype : DType::f32);
  prelude.type("TResidual", conv.residual ? conv.residual->dtype : DType::f32);
  prelude.constant("BIAS_STRIDE", conv.bias ? conv.bias->strides.front() : 1);
}

bool needs_64_bits(const ConvForward& conv) {
  constexpr int64_t limit = int64_t{1} << 30;
  const auto far = [&](size_t axis) {
    const int64_t outputs = conv.y.extents[2 + axis], window = conv.w.extents[2 + axis];
    return conv.pad_begin[axis] >= limit || conv.stride[axis] >= limit / outputs ||
           conv.dilation[axis] >= limit / window;
  };
  return needs_wide_index({&conv.x, &conv.w, &conv.y}) || (conv.residual && needs_wide_index({&*conv.residual})) ||
         far(0) || far(1);
}

std::optional<ConvLayout> common_layout(const ConvForward& conv) {
  const bool nchw = is_packed_as(conv, ConvLayout::nchw), nhwc = is_packed_as(conv, ConvLayout::nhwc);
  if (nchw && nhwc) return conv.p() * conv.q() > conv.k() ? ConvLayout::nchw : ConvLayout::nhwc;
  if (nchw) return ConvLayout::nchw;
  if (nhwc) return ConvLayout::nhwc;
  return std::nullopt;
}

bool is_pointwise(const ConvForward& conv) {
  constexpr std::array<int64_t, 2> none{0, 0}, unit{1, 1};
  return conv.r() == 1 && conv.s() == 1 && conv.stride == unit && conv.pad_begin == none && conv.pad_end == none;
}

}  // namespace

ConvProblem ConvProblem::of(const Request& request) {
  ConvProblem problem{ConvForward::of(request), std::nullopt};
  problem.common_layout = descriptor::common_layout(problem);
  problem.wide_index = needs_64_bits(problem);
  problem.pointwise = is_pointwise(problem);
  return problem;
}

ConvLayout ConvProblem::layout() const {
  if (!common_layout) throw Error(ErrorCode::internal, "a kernel for packed operands was asked about others");
  return *common_layout;
}

bool is_packed_as(const ConvForward& conv, ConvLayout layout) {
  const char* const order = layout == ConvLayout::nchw ? "nchw" : "nhwc";
  return conv.x.is_packed(order) && conv.w.is_packed(order) && conv.y.is_packed(order) &&
         (!conv.residual || conv.residual->is_packed(order));
}

Prelude conv_prelude(const ConvProblem& conv) {
  Prelude prelude;
  prelude.type("TX", conv.x.dtype).type("TW", conv.w.dtype).type("TY", conv.y.dtype);
  prelude.index_type("Index", conv.wide_index);
  add_batch(prelude, conv.n(), conv.dynamic_batch);
  prelude.constant("C", conv.c()).constant("H", conv.h()).constant("W", conv.width());
  prelude.constant("K", conv.k()).constant("P", conv.p()).constant("Q", conv.q());
  prelude.constant("R", conv.r()).constant("S", conv.s());
  prelude.constant("PAD_TOP", conv.pad_begin[0]).constant("PAD_LEFT", conv.pad_begin[1]);
  prelude.constant("STRIDE_H", conv.stride[0]).constant("STRIDE_W", conv.stride[1]);
  prelude.constant("DILATION_H", conv.dilation[0]).constant("DILATION_W", conv.dilation[1]);
  prelude.constant("GROUPS", conv.groups);
  prelude.constant("C_PER_GROUP", conv.c_per_group()).constant("K_PER_GROUP", conv.k_per_group());
  prelude.flag("MIRRORED", conv.mirrored);
  add_blend(prelude, conv.blend);
  add_epilogue(prelude, conv);
  return prelude;
}

Launch conv_launch(std::string entry, int threads) {
  Launch launch;
  launch.entry = std::move(entry);
  launch.block[0] = static_cast<unsigned>(threads);
  launch.arguments = {OperandArgument{"x"},
                      OperandArgument{"w"},
                      OperandArgument{"y"},
                      OperandArgument{"bias"},
                      OperandArgument{"residual"},
                      Scalar::alpha,
                      Scalar::beta,
                      Scalar::clip_lo,
                      Scalar::clip_hi,
                      Scalar::n};
  return launch;
}

Count blocks_for(const ConvProblem& conv, int64_t per_image, int64_t per_block) {
  return blocks_for(per_image, conv.n(), conv.dynamic_batch, per_block);
}

std::optional<std::string> packed_refusal(const ConvProblem& conv) {
  if (!conv.common_layout) return "x, w, y and residual are not all packed nchw, nor all packed nhwc";
  if (conv.blend.alpha == Scale::zero) return "alpha is zero: there is nothing to multiply";
  return std::nullopt;
}

int vector_width(const TensorSpec& spec, int64_t run) {
  const int limit = std::min(16, spec.alignment) / size_of(spec.dtype);
  int width = 1;
  while (width * 2 <= limit && run % (width * 2) == 0) width *= 2;
  return width;
}

int output_vector_width(const ConvProblem& conv, int64_t run) {
  const int width = vector_width(conv.y, run);
  return conv.residual ? std::min(width, vector_width(*conv.residual, run)) : width;
}

}  // namespace kiln::descriptor
