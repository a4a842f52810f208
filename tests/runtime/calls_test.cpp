// conv_forward, pool_forward and softmax_forward from an application's point of view.
#include <fcntl.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <thread>

#include "device_fixture.h"
#include "kiln/base/error.h"
#include "kiln/conv.h"
#include "kiln/device/stream.h"
#include "kiln/generator/operation.h"
#include "kiln/pool.h"
#include "kiln/reference/fill.h"
#include "kiln/reference/tensor_memory.h"
#include "kiln/reference/tolerance.h"
#include "kiln/softmax.h"

namespace kiln::calls_test {
namespace {

using testing::Each;
using testing::HasSubstr;
using testing::StartsWith;

/// Output of `body` on standard error. GoogleTest's own capture needs a /tmp that can be written; this takes TempDir().
std::string standard_error_of(const std::function<void()>& body) {
  const std::string path = testing::TempDir() + "kiln_calls_standard_error.txt";
  const int terminal = dup(STDERR_FILENO);
  const int file = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  dup2(file, STDERR_FILENO);
  body();
  std::fflush(stderr);
  dup2(terminal, STDERR_FILENO);
  close(file);
  close(terminal);
  std::ifstream written(path);
  return {std::istreambuf_iterator<char>(written), {}};
}

class CallsTest : public DeviceTest {
 protected:
  CallsTest() : context_(options()) {}

  struct Operands {
    std::map<std::string, std::vector<std::byte>> host;
    std::map<std::string, void*> device;
  };

  Operands make(const Request& request) {
    Operands operands;
    for (const Operand& operand : request.operands) {
      auto memory = reference::filled(operand.spec, reference::Values::uniform, 11);
      operands.device[operand.name] = upload(memory);
      operands.host[operand.name] = std::move(memory);
    }
    return operands;
  }

  void expect_right(const Request& request, const Operands& operands, float alpha = 1, float beta = 0, float lo = 0,
                    float hi = 0) {
    reference::Bindings bindings;
    for (const auto& [name, memory] : operands.host) bindings.operands[name] = memory;
    bindings.values.alpha = alpha;
    bindings.values.beta = beta;
    bindings.values.clip_lo = lo;
    bindings.values.clip_hi = hi;
    const auto& [name, spec] = result_of(request);
    const auto bytes = static_cast<size_t>(reference::byte_span(spec));
    const auto mismatch = reference::compare(request, bindings, download(operands.device.at(name), bytes));
    EXPECT_FALSE(mismatch) << mismatch->text();
  }

  static void in_threads(size_t count, const std::function<void(size_t)>& work) {
    std::vector<std::jthread> threads;
    for (size_t i = 0; i < count; ++i) threads.emplace_back(work, i);
  }

  Context context_;
};

TEST_F(CallsTest, ConvolutionWithEverything) {
  const Request request = Request::parse(
      "conv_forward x=f16:2x6x9x7:nhwc w=f16:8x3x3x3:nhwc y=f16:2x8x5x6:nhwc pad=1,2,1,1 stride=2,1 dilation=1,2 "
      "groups=2 alpha=any beta=any epilogue=bias+add+clip");
  const Operands operands = make(request);
  auto& device = const_cast<Operands&>(operands).device;
  const Tensor x(device["x"], f16, {2, 6, 9, 7}, nhwc), w(device["w"], f16, {8, 3, 3, 3}, nhwc);
  const Tensor y(device["y"], f16, {2, 8, 5, 6}, nhwc), b(device["bias"], f16, {8}, contiguous);
  const Tensor residual(device["residual"], f16, {2, 8, 5, 6}, nhwc);
  ConvOptions options;
  options.pad = {1, 2, 1, 1};
  options.stride = {2, 1};
  options.dilation = {1, 2};
  options.groups = 2;
  options.alpha = 0.5f;
  options.beta = -2.0f;
  options.epilogue = bias(b) + add(residual) + clip(-0.5f, 0.75f);
  conv_forward(context_, x, w, y, options);
  expect_right(request, operands, 0.5f, -2.0f, -0.5f, 0.75f);
}

TEST_F(CallsTest, GradientsOfPooling) {
  const Request max = Request::parse(
      "pool_backward dy=f32:2x3x5x4 x=f32:2x3x9x9 dx=f32:2x3x9x9:nhwc window=3 stride=2 pad=1,1,1,0 alpha=any "
      "beta=any");
  PoolOptions options;
  options.window = {3, 3};
  options.stride = {2, 2};
  options.pad = {1, 1, 1, 0};
  options.alpha = 0.5f;
  options.beta = -2.0f;
  const Operands operands = make(max);
  pool_backward(context_, Tensor(operands.device.at("dy"), f32, {2, 3, 5, 4}, nchw),
                Tensor(operands.device.at("x"), f32, {2, 3, 9, 9}, nchw),
                Tensor(operands.device.at("dx"), f32, {2, 3, 9, 9}, nhwc), options);
  expect_right(max, operands, 0.5f, -2.0f);

  const Request average = Request::parse("pool_backward dy=f16:2x3x5 dx=f16:2x3x11:ncw mode=avg window=3 stride=2");
  const Operands of_average = make(average);
  const Tensor dx(of_average.device.at("dx"), f16, {2, 3, 11}, contiguous);
  pool_backward(context_, Tensor(of_average.device.at("dy"), f16, {2, 3, 5}, contiguous), dx, dx,
                {.mode = PoolMode::avg, .window = {1, 3}, .stride = {1, 2}});
  expect_right(average, of_average);
}

TEST_F(CallsTest, PoolingAndSoftmax) {
  const Request pool = Request::parse("pool_forward x=f32:2x3x9x9 mode=avg window=3 stride=2 pad=1");
  const Operands pool_operands = make(pool);
  PoolOptions pool_options;
  pool_options.mode = PoolMode::avg;
  pool_options.window = {3, 3};
  pool_options.stride = {2, 2};
  pool_options.pad = {1, 1};
  pool_forward(context_, Tensor(pool_operands.device.at("x"), f32, {2, 3, 9, 9}, nchw),
               Tensor(pool_operands.device.at("y"), f32, {2, 3, 5, 5}, nchw), pool_options);
  expect_right(pool, pool_operands);

  const Request softmax = Request::parse("softmax_forward x=bf16:5x7x3:ncw axis=-1 mode=log");
  const Operands softmax_operands = make(softmax);
  SoftmaxOptions softmax_options;
  softmax_options.axis = -1;
  softmax_options.mode = SoftmaxMode::log;
  softmax_forward(context_, Tensor(softmax_operands.device.at("x"), bf16, {5, 7, 3}, contiguous),
                  Tensor(softmax_operands.device.at("y"), bf16, {5, 7, 3}, contiguous), softmax_options);
  expect_right(softmax, softmax_operands);
}

TEST_F(CallsTest, OneAndThreeSpatialDimensions) {
  const Request line = Request::parse("conv_forward x=f32:2x4x11:ncw w=f32:6x4x3:ncw pad=2,1 stride=2");
  const Operands line_operands = make(line);
  ConvOptions line_options;
  line_options.pad = {0, 2, 0, 1};
  line_options.stride = {1, 2};
  conv_forward(context_, Tensor(line_operands.device.at("x"), f32, {2, 4, 11}, contiguous),
               Tensor(line_operands.device.at("w"), f32, {6, 4, 3}, contiguous),
               Tensor(line_operands.device.at("y"), f32, {2, 6, 6}, contiguous), line_options);
  expect_right(line, line_operands);

  const Request volume = Request::parse(
      "pool_forward x=f16:1x8x5x6x7:ndhwc mode=avg window=3,2,2 pad=1,0,1,0,1,0 stride=2,1,1 dilation=1,2,1");
  const Operands volume_operands = make(volume);
  PoolOptions volume_options;
  volume_options.mode = PoolMode::avg;
  volume_options.window = {2, 2};
  volume_options.pad = {0, 1, 1, 0};
  volume_options.dilation = {2, 1};
  volume_options.depth = {.window = 3, .pad_front = 1, .pad_back = 0, .stride = 2, .dilation = 1};
  const TensorSpec y = volume.at("y");
  pool_forward(context_, Tensor(volume_operands.device.at("x"), f16, {1, 8, 5, 6, 7}, Layout{"ndhwc"}),
               Tensor(volume_operands.device.at("y"), f16,
                      {y.extents[0], y.extents[1], y.extents[2], y.extents[3], y.extents[4]}, Layout{"ndhwc"}),
               volume_options);
  expect_right(volume, volume_operands);

  const Request global = Request::parse("pool_forward x=f32:2x3x4x5x6 mode=max window=global");
  const Operands global_operands = make(global);
  pool_forward(context_, Tensor(global_operands.device.at("x"), f32, {2, 3, 4, 5, 6}, contiguous),
               Tensor(global_operands.device.at("y"), f32, {2, 3, 1, 1, 1}, contiguous), {});
  expect_right(global, global_operands);
}

TEST_F(CallsTest, GlobalPoolingNeedsNoWindow) {
  const Request request = Request::parse("pool_forward x=f32:2x3x5x4 mode=max window=global");
  const Operands operands = make(request);
  pool_forward(context_, Tensor(operands.device.at("x"), f32, {2, 3, 5, 4}, nchw),
               Tensor(operands.device.at("y"), f32, {2, 3, 1, 1}, nchw), {});
  expect_right(request, operands);
}

TEST_F(CallsTest, ADynamicBatchIsServedByOnePlanOfItsBucket) {
  SoftmaxOptions options;
  options.dynamic_batch = true;
  for (int64_t batch : {3, 4}) {
    const Request fixed = Request::parse("softmax_forward x=f32:" + std::to_string(batch) + "x19");
    const Operands operands = make(fixed);
    softmax_forward(context_, Tensor(operands.device.at("x"), f32, {batch, 19}, nc),
                    Tensor(operands.device.at("y"), f32, {batch, 19}, nc), options);
    expect_right(fixed, operands);
  }
}

// Packed tensors with the batch innermost have other strides for every batch. With room for more, one plan serves
// several.
TEST_F(CallsTest, ADynamicBatchMayBeInnermost) {
  const auto plans = [&](int64_t batch, int64_t pitch) {
    const Request fixed = Request::parse(
        fmt::format("pool_forward x=f32:{0}x3x4x6:1,{1},{2},{3} y=f32:{0}x3x2x3:1,{4},{5},{3} window=2 stride=2", batch,
                    24 * pitch, 6 * pitch, pitch, 6 * pitch, 3 * pitch));
    const Operands operands = make(fixed);
    pool_forward(context_, Tensor(operands.device.at("x"), f32, {batch, 3, 4, 6}, {1, 24 * pitch, 6 * pitch, pitch}),
                 Tensor(operands.device.at("y"), f32, {batch, 3, 2, 3}, {1, 6 * pitch, 3 * pitch, pitch}),
                 {.window = {2, 2}, .stride = {2, 2}, .dynamic_batch = true});
    expect_right(fixed, operands);
  };
  plans(3, 3);
  plans(5, 5);
  plans(3, 7);
  plans(7, 7);
}

TEST_F(CallsTest, AnEmptyBatchIsANoOp) {
  const Tensor x(nullptr, f32, {0, 19}, nc), y(nullptr, f32, {0, 19}, nc);
  EXPECT_NO_THROW(softmax_forward(context_, x, y));
  SoftmaxOptions dynamic;
  dynamic.dynamic_batch = true;
  EXPECT_NO_THROW(softmax_forward(context_, x, y, dynamic));
  const Tensor image(nullptr, f32, {0, 3, 8, 8}, nchw), result(nullptr, f32, {0, 4, 8, 8}, nchw);
  const Tensor w(upload(std::vector<std::byte>(432)), f32, {4, 3, 3, 3}, nchw);
  ConvOptions conv;
  conv.pad = {1, 1};
  EXPECT_NO_THROW(conv_forward(context_, image, w, result, conv));
}

TEST_F(CallsTest, PointersThatAreAlignedWorseGetTheirOwnPlan) {
  const Request request = Request::parse("softmax_forward x=f32:4x16:nc@4");
  const Operands operands = make(request);
  std::vector<std::byte> shifted(4 * 16 * 4 + 4);
  std::copy(operands.host.at("x").begin(), operands.host.at("x").end(), shifted.begin() + 4);
  const auto* x = static_cast<const std::byte*>(upload(shifted)) + 4;
  softmax_forward(context_, Tensor(x, f32, {4, 16}, nc), Tensor(operands.device.at("y"), f32, {4, 16}, nc));
  expect_right(request, operands);
}

TEST_F(CallsTest, ASoftmaxMayBeWrittenOverItsInput) {
  Operands operands = make(Request::parse("softmax_forward x=f32:4x37"));
  void* const x = operands.device.at("x");
  softmax_forward(context_, Tensor(x, f32, {4, 37}, nc), Tensor(x, f32, {4, 37}, nc));
  operands.device["y"] = x;
  expect_right(Request::parse("softmax_forward x=f32:4x37"), operands);
}

TEST_F(CallsTest, TheResidualMayBeTheOutputItself) {
  const Request request = Request::parse("conv_forward x=f32:1x4x6x6 w=f32:4x4x3x3 pad=1 epilogue=add+relu");
  Operands operands = make(request);
  const Tensor y(operands.device["y"], f32, {1, 4, 6, 6}, nchw);
  operands.host["residual"] = operands.host["y"];
  ConvOptions options;
  options.pad = {1, 1};
  options.epilogue = add(y) + relu;
  conv_forward(context_, Tensor(operands.device["x"], f32, {1, 4, 6, 6}, nchw),
               Tensor(operands.device["w"], f32, {4, 4, 3, 3}, nchw), y, options);
  expect_right(request, operands);
}

TEST_F(CallsTest, TheResidualMayNotBeTheOutputInAnotherForm) {
  const auto* base = static_cast<const std::byte*>(upload(std::vector<std::byte>(65536)));
  const Tensor x(base, f32, {1, 4, 6, 6}, nchw), w(base + 4096, f32, {4, 4, 3, 3}, nchw);
  const auto* result = base + 8192;
  const Tensor y(result, f32, {1, 4, 6, 6}, nchw);
  const auto refusal = [&](const Tensor& residual) {
    return refusal_of([&] { conv_forward(context_, x, w, y, {.pad = {1, 1}, .epilogue = add(residual)}); });
  };
  const auto overlap = StartsWith("conv_forward: the memory of y and residual overlaps");
  EXPECT_THAT(refusal(Tensor(result, f32, {1, 4, 6, 6}, nhwc)), overlap);
  EXPECT_THAT(refusal(Tensor(result, f16, {1, 4, 6, 6}, nchw)), overlap);
  EXPECT_THAT(refusal(Tensor(result + 4, f32, {1, 4, 6, 6}, nchw)), overlap);
  EXPECT_EQ(refusal(Tensor(result, f32, {1, 4, 6, 6}, {7777, 36, 6, 1})), "accepted")
      << "the stride of one batch is no difference";
}

TEST_F(CallsTest, RegionsOfOneTensorMayInterleave) {
  // x: channels 0 to 7, y: channels 8 to 15 of an NHWC tensor of 16.
  const Request request =
      Request::parse("conv_forward x=f32:1x8x5x5:400,1,80,16 w=f32:8x8x3x3:nhwc y=f32:1x8x5x5:400,1,80,16 pad=1");
  const std::vector<std::byte> whole(400 * sizeof(float));
  Operands operands = make(request);
  auto* const base = static_cast<std::byte*>(upload(whole));
  const auto call = [&](ptrdiff_t distance) {
    conv_forward(context_, Tensor(base, f32, {1, 8, 5, 5}, {400, 1, 80, 16}),
                 Tensor(operands.device["w"], f32, {8, 8, 3, 3}, nhwc),
                 Tensor(base + distance * 4, f32, {1, 8, 5, 5}, {400, 1, 80, 16}), {.pad = {1, 1}});
  };
  EXPECT_NO_THROW(call(8));
  for (const ptrdiff_t distance : {0, 1, 7, 9, 16, 24 - 1, 80}) EXPECT_THROW(call(distance), Error) << distance;
}

TEST_F(CallsTest, ADynamicBatchMustBeTheSameInXAndY) {
  const auto* base = static_cast<const std::byte*>(upload(std::vector<std::byte>(65536)));
  const Tensor w(base, f32, {2, 2, 3, 3}, nchw), x(base + 4096, f32, {3, 2, 5, 5}, nchw);
  const Tensor y(base + 8192, f32, {4, 2, 5, 5}, nchw);
  EXPECT_THROW(conv_forward(context_, x, w, y, {.pad = {1, 1}, .dynamic_batch = true}), Error);
  EXPECT_THROW(pool_forward(context_, x, y, {.window = {3, 3}, .pad = {1, 1}, .dynamic_batch = true}), Error);
  EXPECT_THROW(softmax_forward(context_, x, y, {.dynamic_batch = true}), Error);
}

TEST_F(CallsTest, ADynamicBatchMayBeAnythingFromNothingToBeyondABucket) {
  for (const int64_t n : {0, 1, 3, 4, 5}) {
    const std::string batch = std::to_string(n);
    const Request conv = Request::parse("conv_forward x=f32:" + batch + "x3x7x5 w=f32:5x3x3x3 pad=1 epilogue=relu");
    const Operands c = make(conv);
    conv_forward(context_, Tensor(c.device.at("x"), f32, {n, 3, 7, 5}, nchw),
                 Tensor(c.device.at("w"), f32, {5, 3, 3, 3}, nchw), Tensor(c.device.at("y"), f32, {n, 5, 7, 5}, nchw),
                 {.pad = {1, 1}, .epilogue = relu, .dynamic_batch = true});
    const Request pool = Request::parse("pool_forward x=f32:" + batch + "x3x7x5 mode=max window=3 stride=2 pad=1");
    const Operands p = make(pool);
    pool_forward(context_, Tensor(p.device.at("x"), f32, {n, 3, 7, 5}, nchw),
                 Tensor(p.device.at("y"), f32, {n, 3, 4, 3}, nchw),
                 {.window = {3, 3}, .pad = {1, 1}, .stride = {2, 2}, .dynamic_batch = true});
    if (n == 0) continue;
    expect_right(conv, c);
    expect_right(pool, p);
  }
}

TEST_F(CallsTest, CallsRunOnTheStreamOfTheCaller) {
  const device::Stream stream(device_);
  const Request request = Request::parse("softmax_forward x=f32:6x21");
  const Operands operands = make(request);
  softmax_forward(context_, Tensor(operands.device.at("x"), f32, {6, 21}, nc),
                  Tensor(operands.device.at("y"), f32, {6, 21}, nc), {}, stream.raw());
  stream.synchronize();
  expect_right(request, operands);
  if (!context_.is_emulated()) return;  // NVIDIA's driver follows a handle that is none, and ends the process
  EXPECT_THROW(softmax_forward(context_, Tensor(operands.device.at("x"), f32, {6, 21}, nc),
                               Tensor(operands.device.at("y"), f32, {6, 21}, nc), {},
                               reinterpret_cast<Stream>(uintptr_t{0x5eed})),
               Error)
      << "it did not go to the stream that was given";
}

TEST_F(CallsTest, LogsOneLineACallThatCanBeReplayed) {
  ContextOptions logging = options();
  logging.environment->log = true;
  Context context(logging);
  const Request request = Request::parse("softmax_forward x=f32:2x9");
  const Operands operands = make(request);
  const std::string log = standard_error_of([&] {
    for (int i = 0; i < 2; ++i) {
      softmax_forward(context, Tensor(operands.device.at("x"), f32, {2, 9}, nc),
                      Tensor(operands.device.at("y"), f32, {2, 9}, nc));
    }
  });
  EXPECT_EQ(std::count(log.begin(), log.end(), '\n'), 2);
  const std::string line = log.substr(0, log.find('\n'));
  EXPECT_EQ(line + "\n" + line + "\n", log);
  EXPECT_EQ(Request::parse(line.substr(0, line.find("  #"))), request);
  EXPECT_EQ(parse_requests(log).size(), 2U) << "what stands behind # is a comment to `kiln tune`";
}

TEST_F(CallsTest, BadInputIsRefusedWithItsReasonBeforeAnyLaunch) {
  const auto* base = static_cast<const std::byte*>(upload(std::vector<std::byte>(65536)));
  const Tensor x(base, f32, {1, 4, 8, 8}, nchw), w(base + 4096, f32, {4, 4, 3, 3}, nchw);
  const Tensor y(base + 8192, f32, {1, 4, 6, 6}, nchw), small(base + 8192, f32, {1, 4, 5, 6}, nchw);
  const Tensor inside(base + 512, f32, {1, 4, 6, 6}, nchw), thin(base + 4096, f32, {4, 3, 3, 3}, nchw);
  const Tensor none(nullptr, f32, {1, 4, 8, 8}, nchw);
  const auto failure = [&](const Tensor& x_, const Tensor& w_, const Tensor& y_, const ConvOptions& options = {}) {
    return refusal_of([&] { conv_forward(context_, x_, w_, y_, options); });
  };
  EXPECT_THAT(failure(x, w, small), HasSubstr("y has extents 1x4x5x6, expected 1x4x6x6"));
  EXPECT_THAT(failure(x, thin, y), HasSubstr("w has 3 channels per filter, expected 4"));
  EXPECT_THAT(failure(x, w, inside), HasSubstr("the memory of y and x overlaps"));
  EXPECT_THAT(failure(none, w, y), HasSubstr("x is a null pointer"));
  ConvOptions zero_stride;
  zero_stride.stride = {0, 1};
  EXPECT_THAT(failure(x, w, y, zero_stride), HasSubstr("the stride of h is 0"));
  ConvOptions wrong_bias;
  wrong_bias.epilogue = bias(Tensor(base + 32768, f32, {5}, contiguous));
  EXPECT_THAT(failure(x, w, y, wrong_bias), HasSubstr("bias has extents 5, expected 4"));
}

TEST_F(CallsTest, ManyThreadsShareOneContext) {
  const Request request = Request::parse("softmax_forward x=f32:8x33");
  std::vector<Operands> operands;
  for (int i = 0; i < 4; ++i) operands.push_back(make(request));
  in_threads(4, [&](size_t i) {
    Operands& mine = operands[i];
    for (int round = 0; round < 20; ++round) {
      softmax_forward(context_, Tensor(mine.device["x"], f32, {8, 33}, nc), Tensor(mine.device["y"], f32, {8, 33}, nc));
    }
  });
  for (const Operands& mine : operands) expect_right(request, mine);
}

// Several kernels a call, with a workspace between them: split K.
TEST_F(CallsTest, AreCountedWhereTheyAreRecorded) {
  const std::string file = testing::TempDir() + "kiln_calls_record.txt";
  std::filesystem::remove(file);
  const std::vector<std::byte> memory(4 * 16 * sizeof(float));
  const Tensor x(upload(memory), f32, {4, 16}, nc), y(upload(memory), f32, {4, 16}, nc);
  {
    ContextOptions recording = options();
    recording.environment->record = file;
    Context context(recording);
    for (int i = 0; i < 5; ++i) softmax_forward(context, x, y);
    const Plan plan = context.plan(Request::parse("softmax_forward x=f32:4x16"));
    for (int i = 0; i < 2; ++i) plan.run(nullptr, {x.data(), y.data()}, nullptr);
  }
  synchronize();
  std::ifstream stream(file);
  const std::string lines(std::istreambuf_iterator<char>(stream), {});
  int64_t calls = 0;
  for (const RequestLine& line : parse_requests(lines)) calls += line.count;
  EXPECT_EQ(calls, 7);
  std::filesystem::remove(file);
}

class WorkspaceCallsTest : public CallsTest {
 protected:
  WorkspaceCallsTest() {
    const Context untuned(options());
    for (const ExplainedCandidate& candidate : untuned.explain(request_).estimated) {
      if (candidate.algorithm != "conv_implicit_gemm_splitk") continue;
      context_ = Context(options_with_winner(request_, candidate));
      break;
    }
    EXPECT_GT(context_.plan(request_).workspace_bytes(), 0);
  }

  // Calls on `stream` from four threads, each with an x of its own, and looks at every result.
  void expect_calls_do_not_mix(Stream stream) {
    const Tensor w(upload(constant(32 * 256 * 9, 1)), f32, {32, 256, 3, 3}, nchw);
    std::vector<void*> inputs(4), outputs(4);
    for (size_t i = 0; i < 4; ++i) {
      inputs[i] = upload(constant(256 * 49, static_cast<float>(i + 1)));
      outputs[i] = upload(constant(32 * 49, 0));
    }
    std::array<int, 4> wrong{};
    in_threads(4, [&](size_t i) {
      const Tensor x(inputs[i], f32, {1, 256, 7, 7}, nchw), y(outputs[i], f32, {1, 32, 7, 7}, nchw);
      for (int round = 0; round < 10; ++round) {
        conv_forward(context_, x, w, y, {.pad = {1, 1}}, stream);
        const float inner = download<float>(outputs[i], 32 * 49)[8];  // at (0, 0, 1, 1), away from the padding
        wrong[i] += inner != static_cast<float>(i + 1) * 256 * 9;
      }
    });
    EXPECT_THAT(wrong, Each(0));
  }

  static std::vector<std::byte> constant(size_t count, float value) {
    const std::vector<float> values(count, value);
    const auto bytes = std::as_bytes(std::span(values));
    return {bytes.begin(), bytes.end()};
  }

  Request request_ = Request::parse("conv_forward x=f32:1x256x7x7 w=f32:32x256x3x3 pad=1");
};

TEST_F(WorkspaceCallsTest, ThreadsOnTheDefaultStreamDoNotMix) {
  expect_calls_do_not_mix(nullptr);
}

TEST_F(WorkspaceCallsTest, ThreadsOnTheirOwnDefaultStreamsDoNotMix) {
  expect_calls_do_not_mix(reinterpret_cast<Stream>(uintptr_t{2}));  // CU_STREAM_PER_THREAD
}

TEST_F(WorkspaceCallsTest, ThreadsOnOneStreamOfTheCallerDoNotMix) {
  const device::Stream stream(device_);
  expect_calls_do_not_mix(stream.raw());
}

TEST_F(WorkspaceCallsTest, StreamsThatComeAndGoLeaveNoMemoryBehind) {
  const Operands operands = make(request_);
  const auto call = [&] {
    const device::Stream stream(device_);
    conv_forward(context_, Tensor(operands.device.at("x"), f32, {1, 256, 7, 7}, nchw),
                 Tensor(operands.device.at("w"), f32, {32, 256, 3, 3}, nchw),
                 Tensor(operands.device.at("y"), f32, {1, 32, 7, 7}, nchw), {.pad = {1, 1}}, stream.raw());
    stream.synchronize();
  };
  call();
  const size_t free_bytes = device_->memory().free_bytes;
  for (int i = 0; i < 40; ++i) call();
  // A GPU's memory is that of all processes.
  if (device_->driver().is_emulated()) {
    EXPECT_EQ(device_->memory().free_bytes, free_bytes);
  }
  expect_right(request_, operands);
}

}  // namespace
}  // namespace kiln::calls_test
