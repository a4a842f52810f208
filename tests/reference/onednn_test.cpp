// The reference against an independent implementation: oneDNN on the CPU, in f32.
#include <gtest/gtest.h>

#include <oneapi/dnnl/dnnl.hpp>

#include "call.h"
#include "kiln/generator/operations/conv_backward_data.h"
#include "kiln/generator/operations/conv_backward_filter.h"
#include "kiln/generator/operations/conv_forward.h"
#include "kiln/generator/operations/gemm.h"
#include "kiln/generator/operations/pool_forward.h"
#include "kiln/generator/operations/softmax_backward.h"
#include "kiln/generator/operations/softmax_forward.h"
#include "kiln/reference/tolerance.h"

namespace kiln::reference::onednn_test {
namespace {

using dnnl::memory;

/// oneDNN with one CPU engine. Requests have packed nchw operands.
class OneDnn {
 public:
  memory bind(const memory::desc& desc, std::vector<std::byte>& bytes) { return {desc, engine_, bytes.data()}; }
  static memory::desc describe(const memory::dims& dims, memory::format_tag tag) {
    return {dims, memory::data_type::f32, tag};
  }

  void run(const dnnl::primitive& primitive, const std::unordered_map<int, memory>& arguments) {
    dnnl::stream stream(engine_);
    primitive.execute(stream, arguments);
    stream.wait();
  }

  const dnnl::engine& engine() const { return engine_; }

 private:
  dnnl::engine engine_{dnnl::engine::kind::cpu, 0};
};

/// oneDNN counts the elements that a dilation skips.
memory::dims skipped(memory::dims dilation) {
  for (int64_t& distance : dilation) --distance;
  return dilation;
}

/// Logical order without gaps, of 1 to 6 dimensions.
memory::format_tag packed(size_t rank) {
  using tag = memory::format_tag;
  constexpr std::array tags{tag::a, tag::ab, tag::abc, tag::abcd, tag::abcde, tag::abcdef};
  return tags.at(rank - 1);
}

std::vector<std::byte> conv_by_onednn(Call& call) {
  const ConvForward conv = ConvForward::of(call.request);
  OneDnn dnn;
  memory::dims filter{conv.groups, conv.k_per_group()};
  filter.insert(filter.end(), conv.w.extents.begin() + 1, conv.w.extents.end());
  const auto x = OneDnn::describe(conv.x.extents, packed(conv.x.extents.size()));
  const auto w = OneDnn::describe(filter, packed(filter.size()));
  const auto y = OneDnn::describe(conv.y.extents, packed(conv.y.extents.size()));
  const dnnl::convolution_forward::desc desc(dnnl::prop_kind::forward_inference, dnnl::algorithm::convolution_direct, x,
                                             w, y, conv.stride, skipped(conv.dilation), conv.pad_begin, conv.pad_end);
  auto output = poisoned(conv.y);
  dnn.run(dnnl::convolution_forward({desc, dnn.engine()}), {{DNNL_ARG_SRC, dnn.bind(x, call.memory["x"])},
                                                            {DNNL_ARG_WEIGHTS, dnn.bind(w, call.memory["w"])},
                                                            {DNNL_ARG_DST, dnn.bind(y, output)}});
  return output;
}

/// The memory of a convolution, or of a gradient of one, as oneDNN names its tensors.
struct ConvMemory {
  memory::desc x, w, y;

  template <class View>
  ConvMemory(const View& conv, const TensorSpec& x_, const TensorSpec& w_, const TensorSpec& y_) {
    memory::dims filter{conv.groups, conv.k_per_group()};
    filter.insert(filter.end(), w_.extents.begin() + 1, w_.extents.end());
    x = OneDnn::describe(x_.extents, packed(x_.extents.size()));
    w = OneDnn::describe(filter, packed(filter.size()));
    y = OneDnn::describe(y_.extents, packed(y_.extents.size()));
  }

  /// oneDNN asks for the forward convolution of a gradient.
  template <class View>
  dnnl::convolution_forward::primitive_desc forward(const View& conv, const dnnl::engine& engine) const {
    return {{dnnl::prop_kind::forward_training, dnnl::algorithm::convolution_direct, x, w, y, conv.stride,
             skipped(conv.dilation), conv.pad_begin, conv.pad_end},
            engine};
  }
};

std::vector<std::byte> conv_backward_data_by_onednn(Call& call) {
  const ConvBackwardData conv = ConvBackwardData::of(call.request);
  OneDnn dnn;
  const ConvMemory at(conv, conv.dx, conv.w, conv.dy);
  const dnnl::convolution_backward_data::desc desc(dnnl::algorithm::convolution_direct, at.x, at.w, at.y, conv.stride,
                                                   skipped(conv.dilation), conv.pad_begin, conv.pad_end);
  auto output = poisoned(conv.dx);
  dnn.run(dnnl::convolution_backward_data({desc, dnn.engine(), at.forward(conv, dnn.engine())}),
          {{DNNL_ARG_DIFF_DST, dnn.bind(at.y, call.memory["dy"])},
           {DNNL_ARG_WEIGHTS, dnn.bind(at.w, call.memory["w"])},
           {DNNL_ARG_DIFF_SRC, dnn.bind(at.x, output)}});
  return output;
}

std::vector<std::byte> conv_backward_filter_by_onednn(Call& call) {
  const ConvBackwardFilter conv = ConvBackwardFilter::of(call.request);
  OneDnn dnn;
  const ConvMemory at(conv, conv.x, conv.dw, conv.dy);
  const dnnl::convolution_backward_weights::desc desc(dnnl::algorithm::convolution_direct, at.x, at.w, at.y,
                                                      conv.stride, skipped(conv.dilation), conv.pad_begin,
                                                      conv.pad_end);
  auto output = poisoned(conv.dw);
  dnn.run(dnnl::convolution_backward_weights({desc, dnn.engine(), at.forward(conv, dnn.engine())}),
          {{DNNL_ARG_SRC, dnn.bind(at.x, call.memory["x"])},
           {DNNL_ARG_DIFF_DST, dnn.bind(at.y, call.memory["dy"])},
           {DNNL_ARG_DIFF_WEIGHTS, dnn.bind(at.w, output)}});
  return output;
}

/// A local convolution, or a gradient of one, region by region: each is an ordinary convolution with the region's
/// filters, of which the outputs of other regions do not count.
template <class View>
class Regions {
 public:
  explicit Regions(Call& call) : call_(call), view_(View::of(call.request)), y_(outputs_of(view_)) {
    for (const int64_t along_an_axis : view_.grid) count_ *= along_an_axis;
  }

  int64_t count() const { return count_; }

  /// The ordinary convolution with the filters of `region`, whose `filters` operand is a part of the local one's. Its
  /// gradient `dy`, if it reads one, is zero outside the region.
  Call ordinary(int64_t region, const std::string& filters) const {
    View one = view_;
    one.grid.clear();
    filters_of(one).extents[0] /= count_;
    Call call(one.request().key());
    for (auto& [name, bytes] : call.memory) {
      if (name == filters) {
        const auto begin = call_.memory[name].begin() + static_cast<std::ptrdiff_t>(bytes.size()) * region;
        std::copy_n(begin, bytes.size(), bytes.begin());
      } else {
        bytes = call_.memory[name];
      }
      if (name == "dy") keep(bytes, region);
    }
    return call;
  }

  /// Leaves the elements of `region` in a tensor like y, and zero elsewhere; or copies them alone.
  void keep(std::vector<std::byte>& bytes, int64_t region) const {
    for_each_coordinate(y_, [&](std::span<const int64_t> at) {
      if (region_of(at) != region) write(y_, bytes, at, 0);
    });
  }
  void copy(std::span<const std::byte> from, int64_t region, std::vector<std::byte>& to) const {
    for_each_coordinate(y_, [&](std::span<const int64_t> at) {
      if (region_of(at) == region) write(y_, to, at, read(y_, from, at));
    });
  }

 private:
  static TensorSpec& filters_of(ConvForward& view) { return view.w; }
  static TensorSpec& filters_of(ConvBackwardData& view) { return view.w; }
  static TensorSpec& filters_of(ConvBackwardFilter& view) { return view.dw; }
  static const TensorSpec& outputs_of(const ConvForward& view) { return view.y; }
  static const TensorSpec& outputs_of(const ConvBackwardData& view) { return view.dy; }
  static const TensorSpec& outputs_of(const ConvBackwardFilter& view) { return view.dy; }

  int64_t region_of(std::span<const int64_t> at) const {
    int64_t region = 0;
    for (size_t i = 2; i < at.size(); ++i) {
      int64_t along = 0;  // the last region that does not begin behind the output
      while ((along + 1) * y_.extents[i] <= at[i] * view_.grid[i - 2]) ++along;
      region = region * view_.grid[i - 2] + along;
    }
    return region;
  }

  Call& call_;
  View view_;
  TensorSpec y_;
  int64_t count_ = 1;
};

std::vector<std::byte> local_conv_by_onednn(Call& call) {
  const Regions<ConvForward> regions(call);
  std::vector<std::byte> output = poisoned(call.request.at("y"));
  for (int64_t region = 0; region < regions.count(); ++region) {
    Call ordinary = regions.ordinary(region, "w");
    regions.copy(conv_by_onednn(ordinary), region, output);
  }
  return output;
}

std::vector<std::byte> local_conv_backward_data_by_onednn(Call& call) {
  const Regions<ConvBackwardData> regions(call);
  const TensorSpec& dx = call.request.at("dx");
  std::vector<double> sums(static_cast<size_t>(dx.elements()));
  for (int64_t region = 0; region < regions.count(); ++region) {
    Call ordinary = regions.ordinary(region, "w");
    const std::vector<std::byte> part = conv_backward_data_by_onednn(ordinary);
    size_t next = 0;
    for_each_coordinate(dx, [&](std::span<const int64_t> at) { sums[next++] += read(dx, part, at); });
  }
  std::vector<std::byte> output = poisoned(dx);
  size_t next = 0;
  for_each_coordinate(dx, [&](std::span<const int64_t> at) { write(dx, output, at, sums[next++]); });
  return output;
}

std::vector<std::byte> local_conv_backward_filter_by_onednn(Call& call) {
  const Regions<ConvBackwardFilter> regions(call);
  std::vector<std::byte> output;
  for (int64_t region = 0; region < regions.count(); ++region) {
    Call ordinary = regions.ordinary(region, "dw");
    const std::vector<std::byte> part = conv_backward_filter_by_onednn(ordinary);
    output.insert(output.end(), part.begin(), part.end());
  }
  return output;
}

std::vector<std::byte> pool_by_onednn(Call& call) {
  const PoolForward pool = PoolForward::of(call.request);
  OneDnn dnn;
  const auto x = OneDnn::describe(pool.x.extents, packed(pool.x.extents.size()));
  const auto y = OneDnn::describe(pool.y.extents, packed(pool.y.extents.size()));
  const auto algorithm = pool.mode == PoolMode::max   ? dnnl::algorithm::pooling_max
                         : pool.mode == PoolMode::avg ? dnnl::algorithm::pooling_avg_exclude_padding
                                                      : dnnl::algorithm::pooling_avg_include_padding;
  const dnnl::pooling_v2_forward::desc desc(dnnl::prop_kind::forward_inference, algorithm, x, y, pool.stride,
                                            pool.window, skipped(pool.dilation), pool.pad_begin, pool.pad_end);
  auto output = poisoned(pool.y);
  dnn.run(dnnl::pooling_v2_forward({desc, dnn.engine()}),
          {{DNNL_ARG_SRC, dnn.bind(x, call.memory["x"])}, {DNNL_ARG_DST, dnn.bind(y, output)}});
  return output;
}

std::vector<std::byte> softmax_by_onednn(Call& call) {
  const SoftmaxForward softmax = SoftmaxForward::of(call.request);
  OneDnn dnn;
  const auto x = OneDnn::describe(softmax.x.extents, packed(softmax.x.extents.size()));
  auto output = poisoned(softmax.y);
  const std::unordered_map<int, memory> arguments{{DNNL_ARG_SRC, dnn.bind(x, call.memory["x"])},
                                                  {DNNL_ARG_DST, dnn.bind(x, output)}};
  const auto axis = static_cast<int>(softmax.axis);
  if (softmax.mode == SoftmaxMode::log) {
    const dnnl::logsoftmax_forward::desc desc(dnnl::prop_kind::forward_inference, x, axis);
    dnn.run(dnnl::logsoftmax_forward({desc, dnn.engine()}), arguments);
  } else {
    const dnnl::softmax_forward::desc desc(dnnl::prop_kind::forward_inference, x, axis);
    dnn.run(dnnl::softmax_forward({desc, dnn.engine()}), arguments);
  }
  return output;
}

std::vector<std::byte> softmax_backward_by_onednn(Call& call) {
  const SoftmaxBackward softmax = SoftmaxBackward::of(call.request);
  OneDnn dnn;
  const auto y = OneDnn::describe(softmax.y.extents, packed(softmax.y.extents.size()));
  auto output = poisoned(softmax.dx);
  const std::unordered_map<int, memory> arguments{{DNNL_ARG_DST, dnn.bind(y, call.memory["y"])},
                                                  {DNNL_ARG_DIFF_DST, dnn.bind(y, call.memory["dy"])},
                                                  {DNNL_ARG_DIFF_SRC, dnn.bind(y, output)}};
  const auto axis = static_cast<int>(softmax.axis);
  if (softmax.mode == SoftmaxMode::log) {
    const dnnl::logsoftmax_forward::primitive_desc forward({dnnl::prop_kind::forward_training, y, axis}, dnn.engine());
    dnn.run(dnnl::logsoftmax_backward({{y, y, axis}, dnn.engine(), forward}), arguments);
  } else {
    const dnnl::softmax_forward::primitive_desc forward({dnnl::prop_kind::forward_training, y, axis}, dnn.engine());
    dnn.run(dnnl::softmax_backward({{y, y, axis}, dnn.engine(), forward}), arguments);
  }
  return output;
}

std::vector<std::byte> gemm_by_onednn(Call& call) {
  const Gemm gemm = Gemm::of(call.request);
  OneDnn dnn;
  const auto describe = [](const TensorSpec& spec) {
    return memory::desc(spec.extents, memory::data_type::f32, spec.strides);
  };
  auto output = poisoned(gemm.c);
  dnn.run(dnnl::matmul({{describe(gemm.a), describe(gemm.b), describe(gemm.c)}, dnn.engine()}),
          {{DNNL_ARG_SRC, dnn.bind(describe(gemm.a), call.memory["a"])},
           {DNNL_ARG_WEIGHTS, dnn.bind(describe(gemm.b), call.memory["b"])},
           {DNNL_ARG_DST, dnn.bind(describe(gemm.c), output)}});
  return output;
}

void expect_agreement(const Call& call, const std::vector<std::byte>& output) {
  const auto mismatch = compare(call.request, call.bindings(), output);
  EXPECT_FALSE(mismatch) << call.request.key() << "\n" << mismatch->text();
}

class ConvForwardReference : public testing::TestWithParam<const char*> {};

TEST_P(ConvForwardReference, AgreesWithOneDnn) {
  for (const Values values : {Values::integers, Values::uniform, Values::wide}) {
    Call call(GetParam(), values);
    expect_agreement(call, conv_by_onednn(call));
  }
}

INSTANTIATE_TEST_SUITE_P(
    AwkwardShapes, ConvForwardReference,
    testing::Values("conv_forward x=f32:1x1x1x1:nchw w=f32:1x1x1x1:nchw",
                    "conv_forward x=f32:2x3x13x11:nchw w=f32:5x3x3x3:nchw pad=1,1",
                    "conv_forward x=f32:1x3x17x19:nchw w=f32:7x3x7x7:nchw pad=3,3 stride=2,2",
                    "conv_forward x=f32:1x4x9x10:nchw w=f32:6x4x3x2:nchw stride=2,3 pad=1,0,2,1",
                    "conv_forward x=f32:1x5x12x7:nchw w=f32:3x5x3x3:nchw dilation=2,3 pad=2,3",
                    "conv_forward x=f32:1x6x8x8:nchw w=f32:4x3x3x3:nchw groups=2 pad=1,1",
                    "conv_forward x=f32:1x6x7x5:nchw w=f32:12x1x3x3:nchw groups=6 pad=1,1 dilation=1,2",
                    "conv_forward x=f32:1x2x3x4:nchw w=f32:2x2x1x1:nchw pad=0,2,3,1 stride=3,2",
                    "conv_forward x=f32:1x64x6x6:nchw w=f32:8x64x3x3:nchw pad=1,1",
                    "conv_forward x=f32:2x3x17:ncw w=f32:5x3x4:ncw pad=2,1 stride=2 dilation=3",
                    "conv_forward x=f32:1x6x9:ncw w=f32:6x1x3:ncw groups=6 pad=1",
                    "conv_forward x=f32:2x3x7x8x9:ncdhw w=f32:4x3x3x2x3:ncdhw pad=1,0,2,0,1,1 stride=2,1,3",
                    "conv_forward x=f32:1x4x6x5x7:ncdhw w=f32:6x2x2x3x1:ncdhw groups=2 dilation=3,2,1 pad=1"));

class ConvBackwardDataReference : public testing::TestWithParam<const char*> {};

TEST_P(ConvBackwardDataReference, AgreesWithOneDnn) {
  for (const Values values : {Values::integers, Values::uniform, Values::wide}) {
    Call call(GetParam(), values);
    expect_agreement(call, conv_backward_data_by_onednn(call));
  }
}

INSTANTIATE_TEST_SUITE_P(
    AwkwardShapes, ConvBackwardDataReference,
    testing::Values("conv_backward_data dy=f32:1x1x1x1 w=f32:1x1x1x1",
                    "conv_backward_data dy=f32:2x5x13x11 w=f32:5x3x3x3 pad=1",
                    "conv_backward_data dy=f32:1x7x9x10 w=f32:7x3x7x7 pad=3 stride=2 output_pad=1,0",
                    "conv_backward_data dy=f32:1x6x5x4 w=f32:6x4x3x2 stride=2,3 pad=1,0,2,1 output_pad=0,2",
                    "conv_backward_data dy=f32:1x3x12x7 w=f32:3x5x3x3 dilation=2,3 pad=2,3",
                    "conv_backward_data dy=f32:1x4x4x4 w=f32:4x3x3x3 groups=2 pad=1 stride=2",
                    "conv_backward_data dy=f32:1x12x7x3 w=f32:12x1x3x3 groups=6 pad=1 dilation=1,2",
                    "conv_backward_data dy=f32:2x5x8 w=f32:5x3x4 pad=2,1 stride=2 dilation=3",
                    "conv_backward_data dy=f32:2x4x4x7x3 w=f32:4x3x3x2x3 pad=1,0,2,0,1,1 stride=2,1,3"));

class ConvBackwardFilterReference : public testing::TestWithParam<const char*> {};

TEST_P(ConvBackwardFilterReference, AgreesWithOneDnn) {
  for (const Values values : {Values::integers, Values::uniform, Values::wide}) {
    Call call(GetParam(), values);
    expect_agreement(call, conv_backward_filter_by_onednn(call));
  }
}

INSTANTIATE_TEST_SUITE_P(
    AwkwardShapes, ConvBackwardFilterReference,
    testing::Values("conv_backward_filter x=f32:1x1x1x1 dy=f32:1x1x1x1 dw=f32:1x1x1x1",
                    "conv_backward_filter x=f32:2x3x13x11 dy=f32:2x5x13x11 dw=f32:5x3x3x3 pad=1",
                    "conv_backward_filter x=f32:1x3x17x19 dy=f32:1x7x9x10 dw=f32:7x3x7x7 pad=3 stride=2",
                    "conv_backward_filter x=f32:1x5x12x7 dy=f32:1x3x12x7 dw=f32:3x5x3x3 dilation=2,3 pad=2,3",
                    "conv_backward_filter x=f32:1x6x8x8 dy=f32:1x4x4x4 dw=f32:4x3x3x3 groups=2 pad=1 stride=2",
                    "conv_backward_filter x=f32:1x6x7x5 dy=f32:1x12x7x3 dw=f32:12x1x3x3 groups=6 pad=1 dilation=1,2",
                    "conv_backward_filter x=f32:2x3x17 dy=f32:2x5x6 dw=f32:5x3x4 pad=2,1 stride=2 dilation=3",
                    "conv_backward_filter x=f32:2x3x7x8x9 dy=f32:2x4x3x8x4 dw=f32:4x3x3x2x3 pad=1,0,2,0,1,1 "
                    "stride=2,1,3"));

class LocalConvReference : public testing::TestWithParam<const char*> {};

TEST_P(LocalConvReference, AgreesWithOneDnnRegionByRegion) {
  for (const Values values : {Values::integers, Values::uniform, Values::wide}) {
    Call call(GetParam(), values);
    const std::string& operation = call.request.operation;
    expect_agreement(call, operation.ends_with("forward") ? local_conv_by_onednn(call)
                           : operation.ends_with("data")  ? local_conv_backward_data_by_onednn(call)
                                                          : local_conv_backward_filter_by_onednn(call));
  }
}

INSTANTIATE_TEST_SUITE_P(
    AwkwardShapes, LocalConvReference,
    testing::Values(
        "local_conv_forward x=f32:1x1x1x1 w=f32:1x1x1x1", "local_conv_forward x=f32:2x3x5x4 w=f32:100x3x3x3 pad=1",
        "local_conv_forward x=f32:2x3x13x11 w=f32:60x3x3x3 pad=1 grid=4,3",
        "local_conv_forward x=f32:1x4x9x10 w=f32:36x2x3x2 stride=2,3 pad=1,0,2,1 groups=2 grid=3,2",
        "local_conv_forward x=f32:1x5x12x7 w=f32:21x5x3x3 dilation=2,3 pad=2,3 grid=7,1",
        "local_conv_forward x=f32:2x3x17 w=f32:20x3x4 pad=2,1 stride=2 dilation=3 grid=4",
        "local_conv_forward x=f32:1x2x4x5x3 w=f32:36x2x3x2x2 pad=1,0,0,1,0,1 grid=3,2,2",
        "local_conv_backward_data dy=f32:2x5x5x4 w=f32:100x3x3x3 pad=1",
        "local_conv_backward_data dy=f32:1x6x5x4 w=f32:36x2x3x2 stride=2,3 pad=1,0,2,1 output_pad=0,2 groups=2 "
        "grid=3,2",
        "local_conv_backward_data dy=f32:2x5x7 w=f32:15x3x4 pad=2,1 stride=2 dilation=3 grid=3",
        "local_conv_backward_data dy=f32:1x3x3x4x3 w=f32:36x2x3x2x2 pad=1,0,0,1,0,1 grid=3,2,2",
        "local_conv_backward_filter x=f32:2x3x5x4 dy=f32:2x5x5x4 dw=f32:100x3x3x3 pad=1",
        "local_conv_backward_filter x=f32:3x6x8x8 dy=f32:3x4x4x4 dw=f32:36x3x3x3 groups=2 pad=1 stride=2 grid=3",
        "local_conv_backward_filter x=f32:2x3x17 dy=f32:2x5x6 dw=f32:20x3x4 pad=2,1 stride=2 dilation=3 grid=4",
        "local_conv_backward_filter x=f32:1x2x4x5x3 dy=f32:1x3x4x4x3 dw=f32:36x2x3x2x2 pad=1,0,0,1,0,1 grid=3,2,2"));

class PoolForwardReference : public testing::TestWithParam<const char*> {};

TEST_P(PoolForwardReference, AgreesWithOneDnn) {
  for (const Values values : {Values::integers, Values::uniform}) {
    Call call(GetParam(), values);
    expect_agreement(call, pool_by_onednn(call));
  }
}

INSTANTIATE_TEST_SUITE_P(
    AwkwardShapes, PoolForwardReference,
    testing::Values("pool_forward x=f32:2x3x13x11:nchw mode=max window=3,3 pad=1,1 stride=2,2",
                    "pool_forward x=f32:1x5x7x9:nchw mode=max window=2,3 pad=0,1,1,2 stride=1,3",
                    "pool_forward x=f32:1x2x11x11:nchw mode=max window=3,3 dilation=2,3 stride=2,1",
                    "pool_forward x=f32:2x3x13x11:nchw mode=avg window=3,3 pad=1,1 stride=2,2",
                    "pool_forward x=f32:1x3x6x5:nchw mode=avg window=4,2 pad=2,0,1,1 stride=3,1",
                    "pool_forward x=f32:2x3x13x11:nchw mode=avg_padded window=3,3 pad=1,1 stride=2,2",
                    "pool_forward x=f32:1x3x6x5:nchw mode=avg_padded window=4,2 pad=2,0,1,1 stride=3,1",
                    "pool_forward x=f32:1x17x7x7:nchw mode=avg window=global",
                    "pool_forward x=f32:2x3x19:ncw mode=max window=4 pad=2,1 stride=3 dilation=2",
                    "pool_forward x=f32:2x3x19:ncw mode=avg_padded window=3 pad=1 stride=2",
                    "pool_forward x=f32:1x3x7x8x9:ncdhw mode=max window=3,2,3 pad=1,0,1 stride=2,1,2",
                    "pool_forward x=f32:1x3x7x8x9:ncdhw mode=avg window=3,2,3 pad=1,1,1 stride=2,3,1",
                    "pool_forward x=f32:1x3x5x6x7:ncdhw mode=avg_padded window=2,4,3 pad=1,2,0,0,1,1",
                    "pool_forward x=f32:2x5x3x4x5:ncdhw mode=avg window=global"));

class SoftmaxForwardReference : public testing::TestWithParam<const char*> {};

TEST_P(SoftmaxForwardReference, AgreesWithOneDnn) {
  for (const Values values : {Values::uniform, Values::integers, Values::wide}) {
    Call call(GetParam(), values);
    expect_agreement(call, softmax_by_onednn(call));
  }
}

INSTANTIATE_TEST_SUITE_P(
    AwkwardShapes, SoftmaxForwardReference,
    testing::Values("softmax_forward x=f32:1x1:nc axis=1", "softmax_forward x=f32:3x1000:nc axis=1",
                    "softmax_forward x=f32:7x5:nc axis=0", "softmax_forward x=f32:2x3x5x7:nchw axis=1",
                    "softmax_forward x=f32:2x3x5x7:nchw axis=3", "softmax_forward x=f32:3x1000:nc axis=1 mode=log",
                    "softmax_forward x=f32:2x13x5x7:nchw axis=1 mode=log"));

class GemmReference : public testing::TestWithParam<const char*> {};

TEST_P(GemmReference, AgreesWithOneDnn) {
  for (const Values values : {Values::integers, Values::uniform, Values::wide}) {
    Call call(GetParam(), values);
    expect_agreement(call, gemm_by_onednn(call));
  }
}

INSTANTIATE_TEST_SUITE_P(AwkwardShapes, GemmReference,
                         testing::Values("gemm a=f32:1x1 b=f32:1x1", "gemm a=f32:7x13 b=f32:13x5",
                                         "gemm a=f32:7x13:1,7 b=f32:13x5:1,13", "gemm a=f32:1x37 b=f32:37x11",
                                         "gemm a=f32:3x7x9 b=f32:1x9x4", "gemm a=f32:1x3x2x9 b=f32:4x1x9x5",
                                         "gemm a=f32:2x1x3x4x5 b=f32:1x2x3x5x6"));

class SoftmaxBackwardReference : public testing::TestWithParam<const char*> {};

TEST_P(SoftmaxBackwardReference, AgreesWithOneDnn) {
  for (const Values values : {Values::uniform, Values::integers}) {
    Call call(GetParam(), values);
    expect_agreement(call, softmax_backward_by_onednn(call));
  }
}

INSTANTIATE_TEST_SUITE_P(
    AwkwardShapes, SoftmaxBackwardReference,
    testing::Values("softmax_backward y=f32:1x1:nc axis=1", "softmax_backward y=f32:3x1000:nc axis=1",
                    "softmax_backward y=f32:7x5:nc axis=0", "softmax_backward y=f32:2x3x5x7:nchw axis=1",
                    "softmax_backward y=f32:2x3x5x7:nchw axis=3", "softmax_backward y=f32:3x1000:nc axis=1 mode=log",
                    "softmax_backward y=f32:2x13x5x7:nchw axis=1 mode=log"));

}  // namespace
}  // namespace kiln::reference::onednn_test
