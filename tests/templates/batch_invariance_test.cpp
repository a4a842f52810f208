// Orders of sums: variants whose orders have equal words give an image, or a row, the same bits, whatever they are and
// whatever batch it is in; and a request with `batch_invariant` is served in one order at every batch.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <map>
#include <optional>
#include <ostream>
#include <set>
#include <string>
#include <vector>

#include "algorithm_cases.h"
#include "before_tests.h"
#include "deep_tests.h"
#include "kiln/device/memory.h"
#include "kiln/generator/check_values.h"
#include "kiln/generator/operation.h"
#include "kiln/reference/fill.h"
#include "variant_check.h"

namespace kiln::testing_support::batch_invariance_test {
namespace {

// As chips add: an order of sums that holds only where every product is rounded by itself would not hold on them.
[[maybe_unused]] const bool is_set = [] {
  before_tests().push_back([] { setenv("KILN_EMULATOR_TENSOR", "hardware", 0); });
  return true;
}();

using Bytes = std::vector<std::byte>;

struct BatchCase {
  std::string name;
  std::string request;                   ///< With N for the batch, which is in front of all else in memory.
  std::set<std::string> shared_by = {};  ///< At least these add in the order that batches share.
  int major = 8, minor = 0;              ///< The architecture.
};

std::string name_of(const testing::TestParamInfo<BatchCase>& info) {
  return info.param.name;
}

void PrintTo(const BatchCase& batch, std::ostream* out) {
  *out << batch.request;
}

constexpr int64_t most_images = 64;

// Some neighbouring images of all.
struct Slice {
  int64_t first, count;
};

class BatchInvariance : public testing::TestWithParam<BatchCase> {
 protected:
  static Request request_of(int64_t n) {
    std::string line = GetParam().request;
    for (size_t at = 0; (at = line.find('N', at)) != std::string::npos;) line.replace(at, 1, std::to_string(n));
    return Request::parse(line, {{"scaled", Expression("acc * 1.7f - 0.3f")},
                                 {"entered", Expression("--- prologue\nx * 0.75f + 0.1f\n---\nacc * 1.7f - 0.3f")}});
  }

  // Bytes of one image of that operand; 0 if it has none.
  int64_t image_bytes(const std::string& operand) const {
    const TensorSpec& spec = all_.at(operand);
    const bool has_images = spec.extents.front() == most_images;
    return has_images ? spec.strides.front() * size_of(spec.dtype) : 0;
  }

  // Results that a variant gives of the images of `slice`, by output, image after image.
  std::map<std::string, Bytes> results(const Request& request, const Choice& choice, const Slice& slice) const {
    const Catalogue& catalogue = built_in_catalogue();
    std::vector<std::string> names;
    std::vector<device::Buffer> buffers;
    std::vector<cuda_abi::CUdeviceptr> addresses;
    for (const Operand& operand : request.operands) {
      names.push_back(operand.name);
      Bytes content = contents_.at(operand.name);
      if (const int64_t bytes = image_bytes(operand.name); bytes > 0) {
        content.erase(content.begin(), content.begin() + slice.first * bytes);
        content.resize(static_cast<size_t>(slice.count * bytes));
      }
      buffers.push_back(device::upload(device_->context, content));
      addresses.push_back(buffers.back().address());
    }
    const execution::Executable executable =
        device_->load(BoundAlgorithm(*catalogue.find(choice.algorithm), request, target_)
                          .program(catalogue.library(), choice.config, Rules::necessary),
                      target_, names);
    const device::Buffer workspace(device_->context, static_cast<size_t>(executable.workspace_bytes()));
    executable.run(nullptr, addresses, values_, request.batch(), workspace.address());
    std::map<std::string, Bytes> outputs;
    for (size_t i = 0; i < names.size(); ++i) {
      if (!is_written(request, names[i])) continue;
      Bytes& output = outputs[names[i]];
      output.resize(static_cast<size_t>(slice.count * image_bytes(names[i])));
      device::copy_to_host(*device_->context, output.data(), addresses[i], output.size());
    }
    return outputs;
  }

  // Expects that a variant gives the images of `slice` the bits that others of its order gave them.
  void expect_known_bits(const std::string& order, const Request& request, const Choice& choice, const Slice& slice) {
    for (const auto& [output, bytes] : results(request, choice, slice)) {
      const auto size = static_cast<size_t>(image_bytes(output));
      for (int64_t i = 0; i < slice.count; ++i) {
        const auto begin = bytes.begin() + i * static_cast<int64_t>(size);
        const Bytes image(begin, begin + static_cast<int64_t>(size));
        const auto [known, is_new] = bits_.try_emplace({order, output, slice.first + i},
                                                       Known{image, choice.algorithm + " " + choice.config.print()});
        if (is_new || known->second.image == image) continue;
        ADD_FAILURE() << choice.algorithm << " " << choice.config.print() << " gives other bits than "
                      << known->second.variant << " to " << output << " of image " << slice.first + i
                      << " in a batch of " << slice.count << ", in the order: " << order;
        return;
      }
    }
  }

  void expect_known_bits(const BoundAlgorithm& algorithm, const std::vector<Config>& configs, const Request& request,
                         const Slice& slice) {
    for (const Config& config : configs) {
      const std::optional<std::string> order = algorithm.order_of_sums(config);
      if (order) expect_known_bits(*order, request, {algorithm.algorithm().name(), config}, slice);
    }
  }

  // Some legal points with an order, `most` in all or one in each order: from all over the space.
  static std::vector<Config> sample(const BoundAlgorithm& algorithm, size_t most) {
    constexpr size_t most_orders = 4;
    std::map<std::string, std::vector<Config>> by_order;
    algorithm.for_each_legal([&](const Config& config) {
      if (const std::optional<std::string> order = algorithm.order_of_sums(config)) by_order[*order].push_back(config);
      return true;
    });
    std::vector<std::vector<Config>> orders;
    for (auto& [order, configs] : by_order) orders.push_back(std::move(configs));
    std::vector<Config> points;
    const size_t count = std::min(orders.size(), most_orders);
    for (size_t i = 0; i < count; ++i) {
      const std::vector<Config>& all = orders[i * orders.size() / count];
      const size_t some = std::clamp<size_t>(most / count, 1, all.size());
      for (size_t j = 0; j < some; ++j) points.push_back(all[j * all.size() / some]);
    }
    return points;
  }

  struct Known {
    Bytes image;
    std::string variant;
  };
  struct Image {
    std::string order, output;
    int64_t number;
    auto operator<=>(const Image&) const = default;
  };

  void SetUp() override {
    if (device_ == nullptr) GTEST_SKIP() << "this device is not of " << target_.arch.name();
  }

  const Target target_ = target_of(GetParam().major, GetParam().minor);
  const TestDevice* const device_ = TestDevice::find(target_.arch);
  const Request all_ = request_of(most_images);
  const RunValues values_ = [this] {
    RunValues values = check_values(all_);
    if (all_.blend.alpha == Scale::any) values.alpha = 0.7F;
    if (all_.blend.beta == Scale::any) values.beta = -0.3F;
    return values;
  }();
  const std::map<std::string, Bytes> contents_ = [this] {
    std::map<std::string, Bytes> contents;
    for (const Operand& operand : all_.operands) {
      contents[operand.name] = reference::filled(all_, operand, reference::Values::uniform, contents.size());
    }
    return contents;
  }();
  std::map<Image, Known> bits_;
};

// Cases whose bits are compared each time; those of the others take minutes.
bool is_compared(const std::string& name) {
  static const std::set<std::string> always = {"OfF32",
                                               "OfScores",
                                               "OfF16",
                                               "OfManyChannels",
                                               "OfTf32",
                                               "FirstLayer",
                                               "DepthwiseChannelsLast",
                                               "Grouped3d",
                                               "GradientByInput",
                                               "Transposed",
                                               "OfOddDepth",
                                               "Softmax",
                                               "SoftmaxAcross",
                                               "LayerNorm",
                                               "GroupNormChannelsLast",
                                               "AveragePool",
                                               "MaxPool"};
  return always.contains(name) || DeepTests::of_project().is_deep_run();
}

// Some points of every algorithm at one batch, then one in each order at others, and of open forms.
TEST_P(BatchInvariance, EqualOrdersGiveEqualBits) {
  if (!is_compared(GetParam().name)) GTEST_SKIP() << "only `scripts/test --deep` compares the bits of this layer";
  const size_t points = DeepTests::of_project().is_deep_run() ? 12 : 3;
  bool is_first = true;
  for (const Slice slice : {Slice{0, 3}, Slice{2, 37}}) {
    const Request request = request_of(slice.count);
    for (const Algorithm& algorithm : built_in_catalogue().algorithms()) {
      if (algorithm.operation() != request.operation) continue;
      const BoundAlgorithm here = algorithm.on(request, target_);
      expect_known_bits(here, sample(here, is_first ? points : 1), request, slice);
    }
    for (const Algorithm& algorithm : built_in_catalogue().open_algorithms()) {
      if (algorithm.operation() != request.operation || !is_first) continue;
      const BoundAlgorithm here = algorithm.on(request, target_);
      expect_known_bits(here, sample(here, 1), request, slice);
    }
    is_first = false;
  }
}

TEST_P(BatchInvariance, ARequestIsServedInOneOrderAtEveryBatch) {
  std::set<std::string> orders, sharing;
  for (const int64_t n : {1, 2, 3, 5, 8, 16, 31, 64, 1000}) {
    Request request = request_of(n);
    request.batch_invariant = true;
    Variants variants = built_in_catalogue().on(finished(request), target_);
    const Candidates candidates = variants.candidates(TestDevice::get().figures);
    ASSERT_FALSE(candidates.ranked.empty()) << n;
    for (const Candidate& candidate : candidates.ranked) {
      const Algorithm& algorithm = *built_in_catalogue().find(candidate.choice.algorithm);
      orders.insert(variants.on(algorithm).order_of_sums(candidate.choice.config).value_or("unknown"));
      sharing.insert(algorithm.name());
    }
  }
  EXPECT_EQ(orders.size(), 1U) << testing::PrintToString(orders);
  for (const std::string& algorithm : GetParam().shared_by) {
    EXPECT_TRUE(sharing.contains(algorithm))
        << algorithm << " not among " << testing::PrintToString(sharing) << ": " << testing::PrintToString(orders);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Convolutions, BatchInvariance,
    testing::Values(
        BatchCase{"OfF32", "conv_forward x=f32:Nx5x9x7 w=f32:12x5x3x3 pad=1 epilogue=bias+relu"},
        BatchCase{"OfF32ChannelsLast",
                  "conv_forward x=f32:Nx12x5x6:nhwc w=f32:10x12x3x3:nhwc pad=1 stride=2 alpha=any beta=any"},
        BatchCase{"FirstLayer", "conv_forward x=f32:Nx3x13x11 w=f32:16x3x5x5 pad=2 stride=2 epilogue=bias"},
        BatchCase{"OfF16",
                  "conv_forward x=f16:Nx24x5x6:nhwc w=f16:16x24x3x3:nhwc pad=1 epilogue=bias+add+relu",
                  {"conv_tensor"}},
        BatchCase{"OfManyChannels", "conv_forward x=f16:Nx80x4x3:nhwc w=f16:16x80x3x3:nhwc pad=1", {"conv_tensor"}},
        BatchCase{"OfF16InNchw", "conv_forward x=f16:Nx20x6x5 w=f16:16x20x3x3 pad=1", {"conv_tensor_staged"}, 7, 5},
        BatchCase{"OfTf32", "conv_forward x=f32:Nx20x5x5:nhwc w=f32:12x20x3x3:nhwc dilation=2 pad=2 tf32"},
        BatchCase{"OfBytes", "conv_forward x=i8:Nx32x5x4:nhwc w=i8:16x32x3x3:nhwc y=f32:Nx16x5x4:nhwc pad=1"},
        BatchCase{"FirstLayerOfF16", "conv_forward x=f16:Nx3x16x16:nhwc w=f16:32x3x7x7:nhwc pad=3 stride=2"},
        BatchCase{"Pointwise", "conv_forward x=f16:Nx48x4x4:nhwc w=f16:40x48x1x1:nhwc epilogue=user:scaled"},
        BatchCase{"WithPrologue", "conv_forward x=f32:Nx6x5x7 w=f32:8x6x3x3 pad=1 epilogue=user:entered"},
        BatchCase{"Depthwise", "conv_forward x=f32:Nx8x9x9 w=f32:8x1x3x3 groups=8 pad=1"},
        BatchCase{"DepthwiseChannelsLast",
                  "conv_forward x=f16:Nx16x7x9:nhwc w=f16:16x1x5x5:nhwc groups=16 pad=2 epilogue=bias"},
        BatchCase{"DepthwiseOfManyTaps",
                  "conv_forward x=f16:Nx4x5x20:nhwc w=f16:4x1x9x17:nhwc groups=4 pad=4,8 epilogue=bias",
                  {"conv_depthwise_tensor"}},
        BatchCase{"Grouped3d", "conv_forward x=f32:Nx6x4x5x6 w=f32:8x3x2x3x3 groups=2 pad=0,1,1 mode=convolution"},
        BatchCase{"WideFilter", "conv_forward x=f32:Nx4x40 w=f32:4x4x16 stride=16"},
        BatchCase{"GradientByInput", "conv_backward_data dy=f32:Nx6x5x4 w=f32:6x8x3x3 dx=f32:Nx8x9x7 pad=1 stride=2"},
        BatchCase{"GradientByInputOfF16",
                  "conv_backward_data dy=f16:Nx16x5x6:nhwc w=f16:16x24x3x3:nhwc pad=1",
                  {"conv_backward_data_tensor"}},
        BatchCase{"GradientByInputOfMirrored",
                  "conv_backward_data dy=f32:Nx6x5x4:nhwc w=f32:6x8x3x3:nhwc pad=1 mode=convolution"},
        BatchCase{"DepthwiseGradient",
                  "conv_backward_data dy=f32:Nx8x5x5 w=f32:8x1x3x3 dx=f32:Nx8x9x9 groups=8 pad=1 stride=2"},
        BatchCase{"DepthwiseMirrored", "conv_forward x=f32:Nx8x6x7:nhwc w=f32:8x1x3x3:nhwc groups=8 mode=convolution"},
        BatchCase{
            "Transposed",
            "conv_backward_data dy=f32:Nx8x4x4:nhwc w=f32:8x6x4x4:nhwc dx=f32:Nx6x16x16:nhwc stride=4 epilogue=bias"},
        BatchCase{"Local", "local_conv_forward x=f32:Nx3x6x5 w=f32:48x3x3x3 y=f32:Nx4x4x3"}),
    name_of);

INSTANTIATE_TEST_SUITE_P(
    Products, BatchInvariance,
    testing::Values(BatchCase{"OfF32", "gemm a=f32:Nx40 b=f32:40x24 epilogue=bias"},
                    BatchCase{"OfF16", "gemm a=f16:Nx72 b=f16:72x40 epilogue=bias+relu", {"gemm_tensor"}},
                    BatchCase{"OfWeightsInRows", "gemm a=bf16:Nx80 b=bf16:80x24:cn alpha=any beta=any"},
                    BatchCase{"OfOddDepth", "gemm a=f16:Nx37 b=f16:37x33"},
                    BatchCase{"OfTf32", "gemm a=f32:Nx48 b=f32:48x32 tf32"},
                    BatchCase{"OfFp8", "gemm a=f8e4m3:Nx160 b=f8e4m3:160x32:cn c=f16:Nx32", {}, 8, 9},
                    BatchCase{"OfScores",
                              "gemm a=f16:Nx3x20x16:960,16,48,1 b=f16:Nx3x16x20:960,16,1,48 c=f16:Nx3x20x20"},
                    BatchCase{"OfHeads", "gemm a=f16:Nx3x32 b=f16:1x32x24"}),
    name_of);

INSTANTIATE_TEST_SUITE_P(
    Rows, BatchInvariance,
    testing::Values(
        BatchCase{"Softmax", "softmax_forward x=f32:Nx268 axis=1"},
        BatchCase{"SoftmaxOfOddRows", "softmax_forward x=f16:Nx37 axis=1 mode=log"},
        BatchCase{"SoftmaxOfLongRows", "softmax_forward x=f16:Nx5000 axis=1"},
        BatchCase{"SoftmaxAcross", "softmax_forward x=f32:Nx21x5x7 axis=1 beta=any"},
        BatchCase{"SoftmaxGradient", "softmax_backward y=f32:Nx300 axis=1"},
        BatchCase{"SoftmaxGradientAcross", "softmax_backward y=f16:Nx21x6x4 axis=1"},
        BatchCase{"Attention", "attention_forward q=f32:Nx2x9x8 k=f32:Nx1x70x8 v=f32:Nx1x70x8 lse=f32:Nx2x9"},
        BatchCase{"AttentionOfF16",
                  "attention_forward q=f16:Nx2x20x16 k=f16:Nx2x70x16 v=f16:Nx2x70x16 left=30 right=0 align=end",
                  {"attention_tensor"}},
        BatchCase{"AttentionOfOneQuery",
                  "attention_forward q=bf16:Nx8x1x32 k=bf16:Nx2x300x32 v=bf16:Nx2x300x32 lengths=i32:N",
                  {"attention_tensor"}},
        BatchCase{"LayerNorm", "norm_forward x=f16:Nx768 w=f32:1x768 b=f32:1x768 axes=1"},
        BatchCase{"LayerNormWithStatistics", "norm_forward x=f32:Nx99 mean=f32:Nx1 inv_deviation=f32:Nx1 axes=1"},
        BatchCase{"RmsNorm", "norm_forward x=f32:Nx257 w=f32:1x257 axes=1 mode=rms"},
        BatchCase{"InstanceNorm", "norm_forward x=f32:Nx6x7x9 w=f32:1x6x1x1 axes=2,3 epilogue=relu"},
        BatchCase{"GroupNormChannelsLast", "norm_forward x=f16:Nx4x8x5x5:800,8,1,160,32 axes=2,3,4"},
        BatchCase{"GroupNormAsScaleAndShift", "norm_affine x=f32:Nx3x4x6x7 w=f32:1x3x4x1x1 axes=2,3,4"},
        BatchCase{"InstanceNormAsScaleAndShift", "norm_affine x=f16:Nx24x5x6:nhwc b=f32:1x24x1x1 axes=2,3"},
        BatchCase{"Sum", "reduce x=f32:Nx500 axes=1"},
        BatchCase{"MeanOfPixels", "reduce x=f16:Nx16x7x7:nhwc axes=2,3 mode=mean"},
        BatchCase{"AveragePool", "pool_forward x=f32:Nx8x9x9 window=3 stride=2 pad=1 mode=avg", {"pool_nchw"}},
        BatchCase{"AveragePoolChannelsLast",
                  "pool_forward x=f16:Nx8x9x9:nhwc window=3 stride=2 pad=1 mode=avg_padded",
                  {"pool_nhwc"}},
        BatchCase{"GlobalAveragePool", "pool_forward x=f32:Nx5x8x7 window=8,7 mode=avg"},
        BatchCase{"GlobalAveragePoolChannelsLast", "pool_forward x=f16:Nx24x7x7:nhwc window=7 mode=avg"},
        BatchCase{"MaxPool", "pool_forward x=f32:Nx8x9x9 window=3 stride=2 pad=1", {"pool_nchw", "pool_simple"}},
        BatchCase{"LargestOfRows", "reduce x=f32:Nx500 axes=1 mode=max", {"reduce_blocks", "reduce_simple"}}),
    name_of);

}  // namespace
}  // namespace kiln::testing_support::batch_invariance_test
