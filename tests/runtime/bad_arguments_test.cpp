// For every argument of every public function: what is wrong with it, and what the error says. Nothing is launched: the
// memory that all calls point at stays as it was.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <limits>

#include "device_fixture.h"
#include "kiln/base/error.h"
#include "kiln/conv.h"
#include "kiln/memory.h"
#include "kiln/pool.h"
#include "kiln/softmax.h"

namespace kiln {
namespace {

using testing::HasSubstr;

struct Bad {
  const char* what;  ///< The argument and what is wrong with it.
  std::function<void()> call;
  const char* message;  ///< Part of the error's text.
};

constexpr int64_t huge = int64_t{1} << 40;

class BadArguments : public DeviceTest {
 protected:
  static constexpr size_t bytes = 65536;

  BadArguments() : pattern_(bytes, std::byte{0x5a}), base_(static_cast<const std::byte*>(upload(pattern_))) {}

  // Each must throw invalid_argument with its message, and leave the memory alone.
  void expect_refused(const std::vector<Bad>& table) {
    for (const Bad& bad : table) {
      try {
        bad.call();
        ADD_FAILURE() << bad.what << ": accepted";
      } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::invalid_argument) << bad.what << ": " << error.what();
        EXPECT_THAT(error.what(), HasSubstr(bad.message)) << bad.what;
      }
      synchronize();
      ASSERT_EQ(download(base_, bytes), pattern_) << bad.what << ": something ran";
    }
  }

  Tensor at(size_t offset, std::initializer_list<int64_t> extents, DType dtype = f32) const {
    return {base_ + offset, dtype, extents, contiguous};
  }

  const std::vector<std::byte> pattern_;
  const std::byte* const base_;
};

TEST_F(BadArguments, OfTensors) {
  const void* p = base_;
  expect_refused({
      {"no extents", [&] { Tensor(p, f32, {}, contiguous); }, "a tensor has 0 dimensions"},
      {"six extents",
       [&] {
         Tensor(p, f32, {1, 1, 1, 1, 1, 1}, contiguous);
       },
       "a tensor has 6 dimensions"},
      {"a negative extent",
       [&] {
         Tensor(p, f32, {2, -3}, nc);
       },
       "the negative extent -3"},
      {"a negative extent with strides",
       [&] {
         Tensor(p, f32, {2, -3}, {3, 1});
       },
       "the negative extent -3"},
      {"a negative stride",
       [&] {
         Tensor(p, f32, {2, 3}, {3, -1});
       },
       "the negative stride -1"},
      {"a layout of another rank",
       [&] {
         Tensor(p, f32, {2, 3}, nchw);
       },
       "layout 'nchw' does not fit 2 extents"},
      {"a layout with a letter twice",
       [&] {
         Tensor(p, f32, {2, 3}, Layout{"nn"});
       },
       "layout 'nn' does not fit"},
      {"fewer strides than extents",
       [&] {
         Tensor(p, f32, {2, 3}, {1});
       },
       "1 strides for 2 extents"},
      {"more elements than addresses",
       [&] {
         Tensor(p, f32, {huge, huge}, nc);
       },
       "more than 2^58 elements"},
      {"a product of extents that overflows",
       [&] {
         Tensor(p, f32, {huge, huge, huge}, contiguous);
       },
       "2^58"},
      {"strides that overflow",
       [&] {
         Tensor(p, f32, {huge, 2}, {huge, 1});
       },
       "more than 2^58 elements"},
      {"strides whose sum is too large",
       [&] {
         Tensor(p, f32, {2, 2}, {int64_t{1} << 57, int64_t{1} << 57});
       },
       "2^58"},
  });
}

TEST_F(BadArguments, OfEpilogues) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  expect_refused({
      {"clip: lo above hi", [] { clip(2, 1); }, "clip(2, 1) is an empty range"},
      {"clip: lo is no number", [&] { clip(nan, 1); }, "is an empty range"},
      {"clip: hi is no number", [&] { clip(0, nan); }, "is an empty range"},
      {"a stage twice", [] { relu + relu; }, "epilogue stage relu stands twice"},
      {"a bias twice", [&] { bias(at(0, {4})) + relu + bias(at(0, {4})); }, "epilogue stage bias stands twice"},
  });
}

TEST_F(BadArguments, OfConvForward) {
  Context context(options());
  const Tensor x = at(0, {1, 4, 8, 8}), w = at(4096, {4, 4, 3, 3}), y = at(8192, {1, 4, 6, 6});
  const auto with = [&](const auto& set) {
    return [&, set] {
      ConvOptions options;
      set(options);
      conv_forward(context, x, w, y, options);
    };
  };
  const auto call = [&](const Tensor& a, const Tensor& b, const Tensor& c) {
    return [&context, a, b, c] { conv_forward(context, a, b, c); };
  };
  const Tensor none(nullptr, f32, {1, 4, 8, 8}, nchw), no_filter(nullptr, f32, {4, 4, 3, 3}, nchw);
  expect_refused({
      {"x: null", call(none, w, y), "x is a null pointer"},
      {"w: null", call(x, no_filter, y), "w is a null pointer"},
      {"y: null", call(x, w, Tensor(nullptr, f32, {1, 4, 6, 6}, nchw)), "y is a null pointer"},
      {"x: two dimensions", call(at(0, {4, 8}), w, y), "conv_forward"},
      {"w: other channels", call(x, at(4096, {4, 3, 3, 3}), y), "w has 3 channels per filter, expected 4"},
      {"w: larger than the input", call(x, at(16384, {4, 4, 11, 11}), y), "the filter does not fit"},
      {"y: other extents", call(x, w, at(8192, {1, 4, 6, 5})), "y has extents 1x4x6x5, expected 1x4x6x6"},
      {"y: over x", call(x, w, at(512, {1, 4, 6, 6})), "the memory of y and x overlaps"},
      {"y: over w", call(x, w, at(4100, {1, 4, 6, 6})), "the memory of y and w overlaps"},
      {"y: elements that share memory", call(x, w, Tensor(base_ + 8192, f32, {1, 4, 6, 6}, {0, 0, 6, 1})),
       "share memory"},
      {"stride: 0", with([](auto& o) {
         o.stride = {0, 1};
       }),
       "the stride of h is 0"},
      {"stride: negative", with([](auto& o) {
         o.stride = {1, -1};
       }),
       "the stride of w is -1"},
      {"dilation: 0", with([](auto& o) {
         o.dilation = {0, 1};
       }),
       "the dilation of h is 0"},
      {"pad: negative", with([](auto& o) {
         o.pad = {-1, 0};
       }),
       "is -1"},
      {"pad: huge", with([](auto& o) {
         o.pad = {huge, 0};
       }),
       "it must lie between"},
      {"groups: 0", with([](auto& o) { o.groups = 0; }), "groups"},
      {"groups: no divisor", with([](auto& o) { o.groups = 3; }), "groups=3 does not divide the 4 channels of x"},
      {"bias: other extents", with([&](auto& o) { o.epilogue = bias(at(32768, {5})); }),
       "bias has extents 5, expected 4"},
      {"bias: null", with([&](auto& o) { o.epilogue = bias(Tensor(nullptr, f32, {4}, contiguous)); }),
       "bias is a null"},
      {"bias: over y", with([&](auto& o) { o.epilogue = bias(at(8192, {4})); }), "the memory of y and bias overlaps"},
      {"residual: other extents", with([&](auto& o) {
         o.epilogue = add(at(32768, {1, 4, 6, 5}));
       }),
       "residual has extents"},
      {"residual: over a part of y", with([&](auto& o) {
         o.epilogue = add(at(8196, {1, 4, 6, 6}));
       }),
       "the memory of y and residual overlaps"},
  });
}

TEST_F(BadArguments, OfPoolBackward) {
  Context context(options());
  const Tensor x = at(0, {1, 4, 8, 8}), dx = at(8192, {1, 4, 8, 8}), dy = at(4096, {1, 4, 4, 4});
  const PoolOptions halves = {.window = {2, 2}, .stride = {2, 2}};
  const auto call = [&](const Tensor& a, const Tensor& b, const Tensor& c) {
    return [&, a, b, c] { pool_backward(context, a, b, c, halves); };
  };
  expect_refused({
      {"dy: null", call(Tensor(nullptr, f32, {1, 4, 4, 4}, nchw), x, dx), "dy is a null pointer"},
      {"x: null", call(dy, Tensor(nullptr, f32, {1, 4, 8, 8}, nchw), dx), "x is a null pointer"},
      {"dx: null", call(dy, x, Tensor(nullptr, f32, {1, 4, 8, 8}, nchw)), "dx is a null pointer"},
      {"dx: two dimensions", call(dy, x, at(8192, {8, 8})), "dx has 2 dimensions"},
      {"dy: other extents", call(at(4096, {1, 4, 4, 7}), x, dx), "dy has extent 7 along w, expected 4"},
      {"dy: other channels", call(at(4096, {1, 3, 4, 4}), x, dx), "N and C are those of dx"},
      {"x: other extents", call(dy, at(0, {1, 4, 8, 7}), dx), "x has extents 1x4x8x7, expected 1x4x8x8"},
      {"dx: over dy", call(dy, x, at(4096, {1, 4, 8, 8})), "the memory of dx and dy overlaps"},
      {"dx: over x", call(dy, x, at(256, {1, 4, 8, 8})), "the memory of dx and x overlaps"},
      {"an epilogue",
       [&] {
         pool_backward(context, dy, x, dx, {.window = {2, 2}, .stride = {2, 2}, .epilogue = relu});
       },
       "it takes no epilogue"},
  });
}

TEST_F(BadArguments, OfPoolForward) {
  Context context(options());
  const Tensor x = at(0, {1, 4, 8, 8}), y = at(8192, {1, 4, 4, 4});
  const auto with = [&](const auto& set) {
    return [&, set] {
      PoolOptions options;
      options.window = options.stride = {2, 2};
      set(options);
      pool_forward(context, x, y, options);
    };
  };
  const auto call = [&](const Tensor& a, const Tensor& b) {
    return [&context, a, b] { pool_forward(context, a, b, {.window = {2, 2}, .stride = {2, 2}}); };
  };
  expect_refused({
      {"x: null", call(Tensor(nullptr, f32, {1, 4, 8, 8}, nchw), y), "x is a null pointer"},
      {"y: null", call(x, Tensor(nullptr, f32, {1, 4, 4, 4}, nchw)), "y is a null pointer"},
      {"x: two dimensions", call(at(0, {8, 8}), y), "x has 2"},
      {"x: no channels", call(at(0, {1, 0, 8, 8}), at(8192, {1, 0, 4, 4})), "x has no channels"},
      {"y: other extents", call(x, at(8192, {1, 4, 4, 7})), "y has extent 7 along w, expected 4"},
      {"y: over x", call(x, at(256, {1, 4, 4, 4})), "the memory of y and x overlaps"},
      {"window: negative", with([](auto& o) {
         o.window = {-2, 2};
       }),
       "the window of h is -2"},
      {"window: half of it", with([](auto& o) {
         o.window = {0, 2};
       }),
       "the window of h is 0"},
      {"window: larger than the input", with([](auto& o) {
         o.window = {9, 9};
       }),
       "the window does not fit"},
      {"stride: 0", with([](auto& o) {
         o.stride = {2, 0};
       }),
       "the stride of w is 0"},
      {"dilation: 0", with([](auto& o) {
         o.dilation = {0, 0};
       }),
       "the dilation of h is 0"},
      {"pad: negative", with([](auto& o) {
         o.pad = {0, -1};
       }),
       "is -1"},
  });
}

TEST_F(BadArguments, OfSoftmaxForward) {
  Context context(options());
  const Tensor x = at(0, {4, 37}), y = at(8192, {4, 37});
  const auto with = [&](const auto& set) {
    return [&, set] {
      SoftmaxOptions options;
      set(options);
      softmax_forward(context, x, y, options);
    };
  };
  const auto call = [&](const Tensor& a, const Tensor& b) {
    return [&context, a, b] { softmax_forward(context, a, b); };
  };
  expect_refused({
      {"x: null", call(Tensor(nullptr, f32, {4, 37}, nc), y), "x is a null pointer"},
      {"y: null", call(x, Tensor(nullptr, f32, {4, 37}, nc)), "y is a null pointer"},
      {"y: other extents", call(x, at(8192, {4, 36})), "y has extents 4x36, expected 4x37"},
      {"y: over x", call(x, at(16, {4, 37})), "the memory of y and x overlaps"},
      {"axis: beyond the dimensions", with([](auto& o) { o.axis = 2; }), "axis 2 is outside the 2 dimensions of x"},
      {"axis: before the first", with([](auto& o) { o.axis = -3; }), "is outside the 2 dimensions of x"},
      {"a dynamic batch along the axis", with([](auto& o) {
         o.axis = 0;
         o.dynamic_batch = true;
       }),
       "the batch cannot be dynamic along the axis"},
  });
}

TEST_F(BadArguments, OfSoftmaxBackward) {
  Context context(options());
  const Tensor y = at(0, {4, 37}), dy = at(8192, {4, 37}), dx = at(16384, {4, 37});
  const auto call = [&](const Tensor& a, const Tensor& b, const Tensor& c, const SoftmaxOptions& options = {}) {
    return [&context, a, b, c, options] { softmax_backward(context, a, b, c, options); };
  };
  const Tensor null(nullptr, f32, {4, 37}, nc);
  expect_refused({
      {"y: null", call(null, dy, dx), "y is a null pointer"},
      {"dy: null", call(y, null, dx), "dy is a null pointer"},
      {"dx: null", call(y, dy, null), "dx is a null pointer"},
      {"dy: other extents", call(y, at(8192, {4, 36}), dx), "dy has extents 4x36, expected 4x37"},
      {"dx: other extents", call(y, dy, at(16384, {5, 37})), "dx has extents 5x37, expected 4x37"},
      {"dx: over y", call(y, dy, at(16, {4, 37})), "the memory of dx and y overlaps"},
      {"dx: over dy", call(y, dy, at(8192 + 16, {4, 37})), "the memory of dx and dy overlaps"},
      {"dx: integers", call(y, dy, at(16384, {4, 37}, i8)), "dx is i8"},
      {"axis: beyond the dimensions", call(y, dy, dx, {.axis = 2}), "axis 2 is outside the 2 dimensions of y"},
      {"an epilogue", call(y, dy, dx, {.epilogue = relu}), "it takes no epilogue"},
      {"user code", call(y, dy, dx, {.epilogue = expression("acc")}), "it takes no epilogue"},
      {"a dynamic batch along the axis", call(y, dy, dx, {.axis = 0, .dynamic_batch = true}),
       "the batch cannot be dynamic along the axis"},
  });
}

TEST_F(BadArguments, OfPlans) {
  Context context(options());
  const Plan plan = context.plan(Request::parse("softmax_forward x=f32:4x37"));
  const Plan dynamic = context.plan(Request::parse("softmax_forward x=f32:4x37 n=?"));
  const void* const x = base_;
  const void* const y = base_ + 8192;
  const auto run = [&](const Plan& which, std::vector<Address> operands, const RunValues& values = {}) {
    return [which, operands, values] { which.run(nullptr, std::span<const Address>(operands), nullptr, values); };
  };
  const auto with_n = [](int64_t n) {
    RunValues values;
    values.n = n;
    return values;
  };
  RunValues half, half_beta;
  half.alpha = 0.5f;
  half_beta.beta = 0.5f;
  expect_refused({
      {"operands: none", run(plan, {}), "0 operands were given, expected 2"},
      {"operands: too few", run(plan, {x}), "1 operands were given, expected 2"},
      {"operands: too many", run(plan, {x, y, y}), "3 operands were given, expected 2"},
      {"operands: the first is null", run(plan, {nullptr, y}), "x is a null pointer"},
      {"operands: the last is null", run(plan, {x, nullptr}), "y is a null pointer"},
      {"operands: misaligned", run(plan, {base_ + 4, y}), "not a multiple of 16"},
      {"alpha: outside its class", run(plan, {x, y}, half), "alpha is 0.5, but the request says alpha=1"},
      {"beta: outside its class", run(plan, {x, y}, half_beta), "beta is 0.5, but the request says beta=0"},
      {"n: of a fixed batch", run(plan, {x, y}, with_n(3)), "fixed to 4"},
      {"n: missing", run(dynamic, {x, y}), "outside the bucket 0 to 4"},
      {"n: beyond the bucket", run(dynamic, {x, y}, with_n(5)), "n is 5, outside the bucket 0 to 4"},
      {"n: negative", run(dynamic, {x, y}, with_n(-2)), "n is -2, outside the bucket"},
  });
}

TEST_F(BadArguments, OfTheWorkspace) {
  Context context(options());
  const Request request = Request::parse("conv_forward x=f32:1x512x7x7 w=f32:64x512x3x3 pad=1");
  const Plan plan = context.plan(request);
  if (plan.workspace_bytes() == 0) GTEST_SKIP() << "the best estimate needs no workspace";
  const std::vector<Address> operands = {base_, base_ + 4096, base_ + 8192};
  expect_refused({
      {"workspace: missing", [&] { plan.run(nullptr, std::span(operands), nullptr); }, "the workspace is missing"},
      {"workspace: misaligned", [&] { plan.run(nullptr, std::span(operands), const_cast<std::byte*>(base_ + 32)); },
       "the workspace is not 256-byte aligned"},
  });
}

TEST_F(BadArguments, OfDeviceMemoryAndContexts) {
  Context context(options());
  DeviceMemory memory(context, 16);
  std::vector<std::byte> more(17);
  const auto context_with = [&](const auto& set) {
    return [this, set] {
      ContextOptions wrong = options();
      set(wrong);
      const Context made(wrong);
    };
  };
  expect_refused({
      {"upload: more than fits", [&] { memory.upload(more); }, "17 bytes do not fit device memory of 16 bytes"},
      {"download: more than there is", [&] { memory.download(more); }, "17 bytes do not fit device memory of 16 bytes"},
      {"device: none of that ordinal", context_with([](auto& o) { o.device = 99; }), "99"},
      {"device: negative", context_with([](auto& o) { o.device = -1; }), "-1"},
      {"cache: an empty path", context_with([](auto& o) { o.cache = ""; }), "tuning database"},
  });
}

}  // namespace
}  // namespace kiln
