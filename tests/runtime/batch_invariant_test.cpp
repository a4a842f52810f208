// `batch_invariant`: an image or a row has the same bits in every batch, wherever it lies in memory and whatever
// serves.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "device_fixture.h"
#include "kiln/call.h"
#include "kiln/context.h"
#include "kiln/conv.h"
#include "kiln/reference/fill.h"

namespace kiln::batch_invariant_test {
namespace {

using testing::HasSubstr;

constexpr int64_t most_images = 64;

// An operation whose first operand has images, and whose others have none, but for the result.
struct Layer {
  std::string call;
  TensorSpec x, y;  // of one image
  std::vector<std::pair<std::string, TensorSpec>> others;
  std::string x_name = "x", y_name = "y";
};

TensorSpec spec(const std::string& text) {
  return TensorSpec::parse(text);
}

const Layer convolution{"conv_forward pad=1", spec("f32:1x5x6x5"), spec("f32:1x9x6x5"), {{"w", spec("f32:9x5x3x3")}}};
const Layer half_convolution{"conv_forward pad=1 epilogue=bias",
                             spec("f16:1x72x4x3:nhwc"),
                             spec("f16:1x16x4x3:nhwc"),
                             {{"w", spec("f16:16x72x3x3:nhwc")}, {"bias", spec("f16:16")}}};
const Layer product{"gemm", spec("f32:1x301"), spec("f32:1x24"), {{"b", spec("f32:301x24")}}, "a", "c"};
const Layer softmax{"softmax_forward axis=1", spec("f32:1x1037"), spec("f32:1x1037"), {}};
const Layer norm{"norm_forward axes=1", spec("f16:1x300"), spec("f16:1x300"), {{"w", spec("f32:1x300")}}};

class BatchInvariantTest : public DeviceTest {
 protected:
  ContextOptions invariant() const {
    ContextOptions options = this->options();
    options.batch_invariant = true;
    return options;
  }

  static size_t bytes_of(const TensorSpec& one) { return static_cast<size_t>(one.elements() * size_of(one.dtype)); }
  static Tensor of_batch(const std::byte* data, TensorSpec one, int64_t n) {
    const std::string order = *one.order();
    one.extents.front() = n;
    return Tensor(data, one.dtype, one.extents, Layout{order});
  }

  // Results of the images [first, first + n), each a string of bytes.
  std::vector<std::string> results(Context& context, const Layer& layer, int64_t first, int64_t n) {
    auto& [x, y, others] = memory_of(layer);
    std::vector<NamedTensor> tensors{
        {layer.x_name, of_batch(x + static_cast<size_t>(first) * bytes_of(layer.x), layer.x, n)},
        {layer.y_name, of_batch(y + static_cast<size_t>(first) * bytes_of(layer.y), layer.y, n)}};
    for (const auto& [name, spec] : layer.others) {
      tensors.push_back({name, Tensor(others.at(name), spec.dtype, spec.extents, Layout{*spec.order()})});
    }
    call(context, layer.call, std::span<const NamedTensor>(tensors));
    const std::vector<char> all =
        download<char>(y + static_cast<size_t>(first) * bytes_of(layer.y), static_cast<size_t>(n) * bytes_of(layer.y));
    std::vector<std::string> images;
    for (size_t i = 0; i < static_cast<size_t>(n); ++i) {
      images.emplace_back(all.data() + i * bytes_of(layer.y), bytes_of(layer.y));
    }
    return images;
  }

  // Images whose bits are not those that they have in a batch of all.
  std::set<int64_t> changed(Context& context, const Layer& layer) {
    const std::vector<std::string> all = results(context, layer, 0, most_images);
    std::set<int64_t> others;
    for (const auto& [first, n] : {std::pair<int64_t, int64_t>{0, 1}, {1, 1}, {5, 2}, {0, 3}, {7, 7}, {3, 33}}) {
      const std::vector<std::string> some = results(context, layer, first, n);
      for (int64_t i = 0; i < n; ++i) {
        if (some[static_cast<size_t>(i)] != all[static_cast<size_t>(first + i)]) others.insert(first + i);
      }
    }
    return others;
  }

 private:
  struct Memory {
    std::byte *x, *y;
    std::map<std::string, std::byte*> others;
  };

  std::byte* filled(TensorSpec spec, int64_t n, uint64_t seed) {
    const std::string order = *spec.order();
    spec.extents.front() *= n;
    const TensorSpec all = TensorSpec::packed(spec.dtype, spec.extents, order);
    return static_cast<std::byte*>(upload(reference::filled(all, reference::Values::uniform, seed)));
  }

  Memory& memory_of(const Layer& layer) {
    const auto known = memory_.find(layer.call);
    if (known != memory_.end()) return known->second;
    Memory memory{filled(layer.x, most_images, 1), filled(layer.y, most_images, 2), {}};
    for (const auto& [name, spec] : layer.others) memory.others[name] = filled(spec, 1, memory.others.size() + 3);
    return memory_.emplace(layer.call, std::move(memory)).first->second;
  }

  std::map<std::string, Memory> memory_;
};

TEST_F(BatchInvariantTest, AContextGivesImagesTheSameBitsInEveryBatch) {
  Context context(invariant());
  EXPECT_EQ(changed(context, convolution), std::set<int64_t>());
  EXPECT_EQ(changed(context, half_convolution), std::set<int64_t>());
  EXPECT_EQ(changed(context, product), std::set<int64_t>());
  EXPECT_EQ(changed(context, softmax), std::set<int64_t>());
  EXPECT_EQ(changed(context, norm), std::set<int64_t>());
}

TEST_F(BatchInvariantTest, WithoutItBitsMayDependOnTheBatch) {
  Context context(options());
  EXPECT_FALSE(changed(context, product).empty()) << "few rows and many have one variant: nothing is shown here";
}

TEST_F(BatchInvariantTest, OpenKernelsAddInTheSameOrder) {
  ContextOptions at_once = invariant();
  at_once.first_call = FirstCall::at_once;
  at_once.kernel_store = testing::TempDir() + "kiln_batch_invariant_store";
  std::filesystem::remove_all(*at_once.kernel_store);
  {
    Context context(at_once);
    (void)results(context, softmax, 0, 5);
    (void)results(context, half_convolution, 0, 5);
    context.wait_until_tuned();
    EXPECT_EQ(changed(context, softmax), std::set<int64_t>());
    EXPECT_EQ(changed(context, half_convolution), std::set<int64_t>());
    context.wait_until_tuned();  // exact plans from here on
    EXPECT_EQ(changed(context, half_convolution), std::set<int64_t>());
  }
  std::filesystem::remove_all(*at_once.kernel_store);
}

// The exact plan adds in the order of the open kernel, so nothing that is deterministic forbids that.
TEST_F(BatchInvariantTest, DeterministicRequestsAreServedAtOnce) {
  ContextOptions at_once = options();
  at_once.first_call = FirstCall::at_once;
  Context context(at_once);
  const auto serves_at_once = [&](const std::string& words) {
    (void)context.plan(Request::parse("gemm a=f32:5x40 b=f32:40x24 " + words));
    context.wait_until_tuned();
    return context.plan(Request::parse("gemm a=f32:7x48 b=f32:48x24 " + words)).is_open();
  };
  EXPECT_FALSE(serves_at_once("deterministic"));
  EXPECT_TRUE(serves_at_once("deterministic batch_invariant"));
}

TEST_F(BatchInvariantTest, AStoredVariantOfAnotherOrderIsPassedOver) {
  const Request request = Request::parse("gemm a=f32:1x300 b=f32:300x24 batch_invariant");
  const ExplainedCandidate split{
      "gemm_splitk", "BLOCK_K=16,BLOCK_M=32,BLOCK_N=32,SLICES=1,SPLIT_K=4,STAGES=1,THREAD_M=4,THREAD_N=4", 1e-6, ""};
  Context without(options_with_winner(Request::parse("gemm a=f32:1x300 b=f32:300x24"), split));
  EXPECT_EQ(without.plan(Request::parse("gemm a=f32:1x300 b=f32:300x24")).variant(),
            split.algorithm + " " + split.config)
      << "it can serve";
  Context context(options_with_winner(request, split));
  EXPECT_THAT(context.plan(request).variant(), testing::Not(HasSubstr("splitk")));
  EXPECT_TRUE(context.explain(request).stored.empty());
}

TEST_F(BatchInvariantTest, ExplainSaysTheOrderAndWhatItCosts) {
  Context context(options());
  const Explanation free = context.explain(Request::parse("gemm a=f32:1x2048 b=f32:2048x512"));
  EXPECT_FALSE(free.order_of_sums);
  const Explanation why = context.explain(Request::parse("gemm a=f32:1x2048 b=f32:2048x512 batch_invariant"));
  ASSERT_TRUE(why.order_of_sums);
  EXPECT_EQ(why.order_of_sums->order, "f32 lanes, one product after the other");
  EXPECT_EQ(why.order_of_sums->basis, "estimate");
  EXPECT_DOUBLE_EQ(why.order_of_sums->slowdown, why.estimated.front().seconds / free.estimated.front().seconds);
  EXPECT_GT(why.order_of_sums->slowdown, 1.1);
  EXPECT_THAT(to_json(why), HasSubstr("\"order\": \"f32 lanes, one product after the other\""));
  ASSERT_FALSE(why.refused.empty());
  const auto split = std::ranges::find(why.refused, "gemm_splitk", &ExplainedRefusal::algorithm);
  ASSERT_NE(split, why.refused.end());
  EXPECT_EQ(split->reason,
            "no legal point of it adds in the order of all batches: f32 lanes, one product after the other");
}

TEST_F(BatchInvariantTest, SumsOverTheBatchAreAsWithout) {
  Context context(invariant());
  const Request gradient = Request::parse("conv_backward_filter x=f32:3x4x5x6 dy=f32:3x8x3x4 dw=f32:8x4x3x3");
  EXPECT_EQ(context.plan(gradient).request(), gradient);
  const Request copy = Request::parse("tensor_transform x=f32:3x4 y=f32:3x4");
  EXPECT_EQ(context.plan(copy).request(), copy);
  EXPECT_TRUE(context.plan(Request::parse("reduce x=f32:3x50 axes=1")).request().batch_invariant);
  EXPECT_FALSE(context.plan(Request::parse("reduce x=f32:3x50 axes=0")).request().batch_invariant);
}

TEST_F(BatchInvariantTest, RefusesWhatCannotBe) {
  const auto refusal = [](const std::string& line) {
    return refusal_of([&] { (void)Request::parse(line + " batch_invariant"); });
  };
  EXPECT_THAT(refusal("conv_backward_filter x=f32:3x4x5x6 dy=f32:3x8x3x4 dw=f32:8x4x3x3"),
              HasSubstr("conv_backward_filter: it cannot be batch_invariant: dw is a sum over the batch"));
  EXPECT_THAT(refusal("softmax_forward x=f32:3x50 axis=0"), HasSubstr("the batch is normalised"));
  EXPECT_THAT(refusal("norm_forward x=f32:3x8x5x5 axes=0,2,3"), HasSubstr("the batch is what statistics are taken of"));
  EXPECT_THAT(refusal("conv_forward x=f32:3x4x5x6:chwn w=f32:8x4x3x3"),
              HasSubstr("the batch lies inside other dimensions of x, whose strides change with it"));
  EXPECT_THAT(refusal("gemm a=f32:8x40:cn b=f32:40x24"), HasSubstr("the batch lies inside other dimensions of a"));
  EXPECT_THAT(refusal("norm_forward x=f32:3x50 w=f32:3x50 axes=1"), HasSubstr("an element for each image"));
  EXPECT_THAT(refusal("tensor_transform x=f32:3x4 y=f32:3x4"),
              HasSubstr("it adds nothing, so no order of sums could depend on the batch"));
  EXPECT_THAT(refusal("norm_backward dy=f32:4x40 x=f32:4x40 axes=1"), HasSubstr("its kernels keep no order of sums"));
}

// An application has calls of all kinds, such as the gradient of a product by its weights.
TEST_F(BatchInvariantTest, AContextServesWhatCannotBeAndSaysSo) {
  std::vector<std::string> said;
  ContextOptions options = invariant();
  options.announce = [&](std::string_view message) { said.emplace_back(message); };
  Context context(options);
  said.clear();  // what is known of the device
  for (const char* const line : {"gemm a=f32:8x40:cn b=f32:40x24", "gemm a=f32:9x40:cn b=f32:40x24"}) {
    const Request request = Request::parse(line);
    EXPECT_EQ(context.plan(request).request(), request);
  }
  EXPECT_EQ(context.plan(Request::parse("gemm a=f16:0x64 b=f16:64x64")).request().batch(), 0);
  EXPECT_EQ(said,
            std::vector<std::string>{"gemm is not batch invariant: the batch lies inside other dimensions of a, whose "
                                     "strides change with it; further such calls are not announced"});
}

TEST_F(BatchInvariantTest, AContextNamesOperationsWhoseKernelsKeepNoOrder) {
  std::vector<std::string> said;
  ContextOptions options = invariant();
  options.announce = [&](std::string_view message) { said.emplace_back(message); };
  Context context(options);
  said.clear();  // what is known of the device
  (void)context.plan(Request::parse("norm_backward dy=f32:4x40 x=f32:4x40 axes=1"));
  (void)context.plan(Request::parse("norm_backward dy=f32:4x44 x=f32:4x44 axes=1"));
  EXPECT_EQ(said, std::vector<std::string>{"norm_backward is not batch invariant: its kernels keep no order of sums; "
                                           "further such calls are not announced"});
}

TEST_F(BatchInvariantTest, WhatNothingServesInOrderIsRefusedWithAdvice) {
  Context context(options());
  const std::string line = "gemm a=f16:70000x1x16 b=f16:1x16x8";
  const std::string refusal =
      refusal_of([&] { (void)context.plan(Request::parse(line + " batch_invariant")); }, ErrorCode::unsupported);
  EXPECT_THAT(refusal, HasSubstr("no legal point of it adds in the order of all batches: tensor cores"));
  EXPECT_THAT(refusal, HasSubstr("leave out batch_invariant"));
  EXPECT_NO_THROW((void)context.plan(Request::parse(line))) << "and the application goes on";
}

// Nobody knows the code at first: what that finds out is not kept.
TEST_F(BatchInvariantTest, CodeThatBecomesKnownHasAnOrder) {
  Context context(options());
  const std::string line = "conv_forward x=f32:2x4x5x5 w=f32:8x4x3x3 batch_invariant epilogue=user:";
  const Expression code("acc * 2.0f");
  EXPECT_FALSE(context.explain(Request::parse(line + code.digest())).chosen);
  EXPECT_TRUE(context.explain(Request::parse(line + "twice", {{"twice", code}})).chosen);
}

}  // namespace
}  // namespace kiln::batch_invariant_test
