// For every argument of what is no operation call: what is wrong with it, and what the error says. Nothing is launched.
#include "bad_arguments.h"

#include <fmt/format.h>

#include <array>
#include <cstring>
#include <limits>

#include "kiln/conv.h"
#include "kiln/memory.h"

namespace kiln::bad_arguments_test {
namespace {

using testing::HasSubstr;

TEST_F(BadArguments, OfTensors) {
  const void* p = base_;
  expect_refused({
      {"a dtype that there is not", [&] { Tensor(p, static_cast<DType>(99), {2}, contiguous); },
       "there is no dtype 99"},
      {"a dtype that there is not, with strides", [&] { Tensor(p, static_cast<DType>(-1), {2}, {1}); },
       "there is no dtype -1"},
      {"no extents", [&] { Tensor(p, f32, {}, contiguous); }, "a tensor has 0 dimensions"},
      {"seven extents",
       [&] {
         Tensor(p, f32, {1, 1, 1, 1, 1, 1, 1}, contiguous);
       },
       "a tensor has 7 dimensions"},
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

TEST_F(BadArguments, OfPlans) {
  Context context(options());
  const Plan plan = context.plan(Request::parse("softmax_forward x=f32:4x37"));
  const Plan dynamic = context.plan(Request::parse("softmax_forward x=f32:4x37 n=?"));
  const Plan clipped = context.plan(Request::parse("conv_forward x=f32:1x4x3x3 w=f32:4x4x1x1 epilogue=clip"));
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
  constexpr float nan = std::numeric_limits<float>::quiet_NaN();
  RunValues half, half_beta, empty_range, no_number, nan_alpha;
  empty_range.clip_lo = 2;
  empty_range.clip_hi = 1;
  no_number.clip_lo = nan_alpha.alpha = nan;
  half.alpha = 0.5f;
  half_beta.beta = 0.5f;
  expect_refused({
      {"operands: none", run(plan, {}), "0 operands were given, expected 2"},
      {"operands: too few", run(plan, {x}), "1 operands were given, expected 2"},
      {"operands: too many", run(plan, {x, y, y}), "3 operands were given, expected 2"},
      {"operands: the first is null", run(plan, {nullptr, y}), "x is a null pointer"},
      {"operands: the last is null", run(plan, {x, nullptr}), "y is a null pointer"},
      {"operands: the first is misaligned", run(plan, {base_ + 4, y}), "x is at"},
      {"operands: as the hint says", run(plan, {base_ + 4, y}), "ask for a plan whose request says so (x=...@4)"},
      {"operands: no multiple of an element", run(plan, {x, base_ + 8194}), "elements of f32 need multiples of 4"},
      {"operands: the last is misaligned", run(plan, {x, base_ + 8200}), "which is not a multiple of 16"},
      {"clip: lo above hi", run(clipped, {x, x, y}, empty_range), "clip_lo is 2 and clip_hi 1, an empty range"},
      {"clip: lo is no number", run(clipped, {x, x, y}, no_number), "clip_lo is nan"},
      {"alpha: no number", run(plan, {x, y}, nan_alpha), "alpha is nan, but the request says alpha=1"},
      {"alpha: outside its class", run(plan, {x, y}, half), "alpha is 0.5, but the request says alpha=1"},
      {"beta: outside its class", run(plan, {x, y}, half_beta), "beta is 0.5, but the request says beta=0"},
      {"n: of a fixed batch", run(plan, {x, y}, with_n(3)), "fixed to 4"},
      {"n: missing", run(dynamic, {x, y}), "n is not given, and the request serves batches of 0 to 4"},
      {"n: beyond the bucket", run(dynamic, {x, y}, with_n(5)), "n is 5, and the request serves batches of 0 to 4"},
      {"n: negative", run(dynamic, {x, y}, with_n(-2)), "n is -2, and the request serves"},
  });
}

TEST_F(BadArguments, AStreamThatIsNone) {
  Context context(options());
  if (!context.is_emulated()) GTEST_SKIP() << "NVIDIA's driver follows the handle, and ends the process";
  const Plan plan = context.plan(Request::parse("softmax_forward x=f32:4x37"));
  try {
    plan.run(reinterpret_cast<Stream>(uintptr_t{0x1234}), {base_, base_ + 8192});
    FAIL() << "it ran";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::driver_error);
    EXPECT_EQ(error.hint(), "give a stream of this device that has not been destroyed, or none");
  }
}

// Memory of the host that the driver knows is the device's, too; other memory of the host is not.
TEST_F(BadArguments, OfPlansOnTheHost) {
  Context context(options());
  const Plan plan = context.plan(Request::parse("softmax_forward x=f32:4x37"));
  alignas(256) const std::array<std::byte, 1024> host{};
  const device::HostBuffer pinned(device_, 2048);
  std::memset(pinned.data(), 0, pinned.size());
  const std::array<Address, 2> there = {pinned.data(), pinned.data() + 1024}, not_x = {host.data(), base_},
                               not_y = {base_, host.data()};
  plan.run(nullptr, there);
  if (device_->device().info().reaches_host_memory) GTEST_SKIP() << "this device reaches all memory of the host";
  expect_refused({
      {"operands: the first is on the host", [&] { plan.run(nullptr, not_x); }, "softmax_forward: x is at 0x"},
      {"operands: the last is on the host", [&] { plan.run(nullptr, not_y); },
       ": this is host memory (or memory that was freed), which the device does not reach (copy it"},
  });
  const Plan dynamic = context.plan(Request::parse("softmax_forward x=f32:4x37 n=?"));
  RunValues none;
  none.n = 0;
  dynamic.run(nullptr, not_x, nullptr, none);  // nothing is read
}

// A tensor that is larger than the memory that it lies in.
TEST_F(BadArguments, OfPlansBeyondTheirMemory) {
  Context context(options());
  const Plan plan = context.plan(Request::parse("softmax_forward x=f32:4x37")),
             dynamic = context.plan(Request::parse("softmax_forward x=f32:4x37 n=?")),
             strided = context.plan(Request::parse("softmax_forward x=f32:4x37:100,1 y=f32:4x37:37,1"));
  const std::byte* const end = base_ + bytes;
  const auto show = [](const void* address) { return fmt::format("{}", address); };
  RunValues three;
  three.n = 3;
  expect_refused({
      {"an input",
       [&] {
         plan.run(nullptr, {end - 576, base_});
       },
       fmt::format("softmax_forward: x takes 592 bytes, from {} to {},", show(end - 576), show(end + 15))},
      {"an output",
       [&] {
         plan.run(nullptr, {base_, end - 576});
       },
       ", and only 576 of them are there: its memory is an allocation of 65536 bytes at 0x"},
      {"with a batch of its own",
       [&] {
         dynamic.run(nullptr, {end - 432, base_}, nullptr, three);
       },
       "x takes 444 bytes, from"},
      {"with strides",
       [&] {
         strided.run(nullptr, {end - 1344, base_});
       },
       "x takes 1348 bytes, from"},
  });
  dynamic.run(nullptr, {end - 448, base_}, nullptr, three);
  strided.run(nullptr, {end - 1360, base_});
  plan.run(nullptr, {end - 592, base_});
}

// The result of a sum over the batch is written even when there is nothing to sum.
TEST_F(BadArguments, OfAnEmptyBatch) {
  Context context(options());
  RunValues none;
  none.n = 0;
  const auto run = [&](const std::string& line, std::vector<Address> operands) {
    return [plan = context.plan(Request::parse(line)), operands, none] {
      plan.run(nullptr, std::span<const Address>(operands), nullptr, none);
    };
  };
  expect_refused({
      {"dw", run("conv_backward_filter x=f32:4x2x5x5 dy=f32:4x3x3x3 dw=f32:3x2x3x3 n=?", {nullptr, nullptr, nullptr}),
       "dw is a null pointer"},
      {"db", run("conv_backward_bias dy=f32:4x3x3x3 n=?", {nullptr, nullptr}), "db is a null pointer"},
  });
}

// Requests that no parser has seen.
TEST_F(BadArguments, OfRequests) {
  Context context(options());
  const Request good = Request::parse("softmax_forward x=f32:4x37");
  const auto spoilt = [&](const auto& edit) {
    Request request = good;
    edit(request);
    return request;
  };
  const auto of_x = [&](const auto& edit) { return spoilt([&](Request& r) { edit(r.operands[0].spec); }); };
  const std::pair<const char*, std::pair<Request, const char*>> table[] = {
      {"nothing", {Request(), "unknown operation ''"}},
      {"an operation that there is not", {spoilt([](auto& r) { r.operation = "blur"; }), "unknown operation 'blur'"}},
      {"no operands", {spoilt([](auto& r) { r.operands.clear(); }), "operand x is missing"}},
      {"an operand that there is not", {spoilt([](auto& r) { r.operands[0].name = "z"; }), "there is no operand z"}},
      {"an operand twice", {spoilt([](auto& r) { r.operands.push_back(r.operands[0]); }), "operand x stands twice"}},
      {"a dtype that there is not",
       {of_x([](auto& x) { x.dtype = static_cast<DType>(99); }), "x has dtype 99, which there is not"}},
      {"a negative extent", {of_x([](auto& x) { x.extents[0] = -4; }), "x has the negative extent -4"}},
      {"a negative stride", {of_x([](auto& x) { x.strides[0] = -37; }), "x has the negative stride -37"}},
      {"no strides", {of_x([](auto& x) { x.strides.clear(); }), "x has 0 strides for 2 extents"}},
      {"fewer strides than extents", {of_x([](auto& x) { x.strides.pop_back(); }), "x has 1 strides for 2 extents"}},
      {"no dimensions", {of_x([](auto& x) { x.strides.clear(), x.extents.clear(); }), "x is missing"}},
      {"six dimensions", {of_x([](auto& x) { x.extents = x.strides = {1, 1, 1, 1, 1, 1}; }), "x has 6 dimensions"}},
      {"too many elements",
       {of_x([](auto& x) {
          x.extents = {huge, huge};
        }),
        "2^58"}},
      {"no alignment", {of_x([](auto& x) { x.alignment = 0; }), "x has alignment 0"}},
      {"an alignment of 12", {of_x([](auto& x) { x.alignment = 12; }), "x has alignment 12"}},
      {"an attribute that there is not", {spoilt([](auto& r) { r.attributes[0].name = "pad"; }), "no attribute pad"}},
      {"an attribute twice",
       {spoilt([](auto& r) { r.attributes.push_back(r.attributes[0]); }), "attribute axis stands twice"}},
      {"a word for integers",
       {spoilt([](auto& r) { r.attributes[0].value = std::string("one"); }), "is not a list of integers"}},
      {"integers for a word", {spoilt([](auto& r) { r.attributes[1].value = std::vector<int64_t>{1}; }), "wrong kind"}},
      {"two axes",
       {spoilt([](auto& r) {
          r.attributes[0].value = std::vector<int64_t>{0, 1};
        }),
        "axis"}},
      {"stages where there are none", {spoilt([](auto& r) { r.epilogue = {EpilogueStage::relu}; }), "no epilogue"}},
      {"arithmetic where there is no choice", {spoilt([](auto& r) { r.arithmetic.tf32 = true; }), "arithmetic"}},
      {"a scale of no class", {spoilt([](auto& r) { r.blend.alpha = static_cast<Scale>(9); }), "alpha is of class 9"}},
  };
  for (const auto& [what, row] : table) {
    const Request& request = row.first;
    const char* const message = row.second;
    expect_refused({
        {what, [&] { context.plan(request); }, message},
        {what, [&] { context.prepare(std::span(&request, 1)); }, message},
        {what, [&] { context.explain(request); }, message},
    });
  }
}

TEST_F(BadArguments, OfTheWorkspace) {
  Context context(options());
  const Request request = Request::parse("conv_forward x=f32:1x512x7x7 w=f32:64x512x3x3 pad=1");
  const Plan plan = context.plan(request);
  if (plan.workspace_bytes() == 0) GTEST_SKIP() << "the best estimate needs no workspace";
  const int64_t needed = plan.workspace_bytes();
  const DeviceMemory x(context, 4 * 512 * 49), w(context, 4 * 64 * 512 * 9), y(context, 4 * 64 * 49),
      small(context, static_cast<size_t>(needed) - 4);
  const std::vector<Address> operands = {x.data(), w.data(), y.data()};
  const auto run = [&](void* workspace) {
    return [&, workspace] { plan.run(nullptr, std::span(operands), workspace); };
  };
  expect_refused({
      {"workspace: missing", run(nullptr), "the workspace is missing"},
      {"workspace: misaligned", run(const_cast<std::byte*>(base_ + 32)), "the workspace is not 256-byte aligned"},
      {"workspace: beyond its memory", run(small.data()),
       fmt::format("the workspace takes {0} bytes, from {1} to {2}, and only {3} of them are there: its memory is an "
                   "allocation of {3} bytes at {1}",
                   needed, small.data(), static_cast<void*>(static_cast<std::byte*>(small.data()) + needed - 1),
                   needed - 4)},
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
  const auto tuning = [&](const TuningPolicy& policy) {
    return context_with([policy](auto& o) { o.tuning = policy; });
  };
  constexpr double nan = std::numeric_limits<double>::quiet_NaN();
  expect_refused({
      {"upload: more than fits", [&] { memory.upload(more); }, "17 bytes do not fit device memory of 16 bytes"},
      {"download: more than there is", [&] { memory.download(more); }, "17 bytes do not fit device memory of 16 bytes"},
      {"device: none of that ordinal", context_with([](auto& o) { o.device = 99; }), "99"},
      {"device: negative", context_with([](auto& o) { o.device = -1; }), "-1"},
      {"workspace_limit: negative", context_with([](auto& o) { o.workspace_limit = -1; }),
       "the workspace limit is -1 bytes"},
      {"tuning: a mode that there is not", tuning({static_cast<TuningMode>(99)}), "there is no tuning mode 99"},
      {"tuning: no time", tuning({TuningMode::within_budget, 0}), "a tuning budget of no time"},
      {"tuning: less than no time", tuning({TuningMode::in_background, -1}), "a tuning budget of no time"},
      {"tuning: a time that is no number", tuning({TuningMode::within_budget, nan}), "a tuning budget of no time"},
      {"tuning: no candidates", tuning({TuningMode::in_background, 1, 0}), "no candidates"},
      {"locked: and tuning", context_with([](auto& o) {
         o.locked = true;
         o.tuning.mode = TuningMode::within_budget;
       }),
       "cannot tune"},
      {"cache: an empty path", context_with([](auto& o) { o.cache = ""; }), "tuning database"},
  });
}

// Settings that a Context cannot do without, and cannot have. Settings that it can do without are announced;
// context_test.cpp.
TEST_F(BadArguments, OfPathsAndSettings) {
  const auto refusal = [this](ErrorCode code, const auto& set) {
    ContextOptions wrong = options();
    set(wrong);
    return refusal_of([&] { const Context made(wrong); }, code);
  };
  const std::string nowhere = testing::TempDir() + "kiln_nowhere";
  EXPECT_THAT(refusal(ErrorCode::io_error, [&](auto& o) { o.user_templates = {nowhere}; }), HasSubstr(nowhere));
  EXPECT_THAT(refusal(ErrorCode::io_error, [&](auto& o) { o.environment->template_path = nowhere; }),
              HasSubstr(nowhere));
  EXPECT_THAT(refusal(ErrorCode::missing_library, [&](auto& o) { o.environment->driver = nowhere; }),
              HasSubstr(nowhere));
  EXPECT_THAT(refusal(ErrorCode::missing_library, [&](auto& o) { o.environment->nvrtc = nowhere; }),
              HasSubstr(nowhere));
  EXPECT_THAT(refusal(ErrorCode::io_error, [&](auto& o) { o.environment->record = nowhere + "/requests.txt"; }),
              HasSubstr(nowhere));
  EXPECT_THAT(refusal(ErrorCode::missing_library,
                      [&](auto& o) {
                        o.environment->worker = nowhere;
                        o.tuning.mode = TuningMode::within_budget;
                      }),
              HasSubstr(nowhere));
}

}  // namespace
}  // namespace kiln::bad_arguments_test
