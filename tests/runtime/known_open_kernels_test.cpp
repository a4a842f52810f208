// KnownOpenKernels: which requests are of one class, when a kernel serves, and what is forgotten.
#include "known_open_kernels.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "kiln/generator/request.h"

namespace kiln::known_open_kernels_test {
namespace {

std::shared_ptr<const OpenKernel> kernel_of(const std::string& code) {
  execution::CompiledProgram compiled;
  compiled.program.sources = {Source(code, {{"ROWS", {5}}})};
  compiled.images.push_back({.ptx = "ptx of " + code, .cubin = {}, .resources = {}});
  return std::make_shared<const OpenKernel>(Choice{"softmax_warp_open", {}}, compiled);
}

Request softmax(const std::string& tail) {
  return Request::parse("softmax_forward x=" + tail);
}

TEST(KnownOpenKernels, SizesOfALayerAreOneClass) {
  KnownOpenKernels known;
  known.add(softmax("f32:5x36"), kernel_of("a"));
  EXPECT_EQ(known.of(softmax("f32:5x36")).size(), 1U);
  EXPECT_EQ(known.of(softmax("f32:1x100")).size(), 1U);
  for (const char* const other :
       {"f16:5x36", "f32:5x36 y=f16:5x36", "f32:5x36 axis=0", "f32:5x36 mode=log", "f32:5x36 beta=1", "f32:5x36:cn",
        "f32:5x36:40,1", "f32:5x36:nc@4", "f32:2x3x4x5", "f32:5x36 n=?"}) {
    EXPECT_TRUE(known.of(softmax(other)).empty()) << other;
  }
}

TEST(KnownOpenKernels, AKernelServesProgramsOfItsSources) {
  const auto kernel = kernel_of("__constant__ int ROWS; // a");
  Program program;
  program.sources = {Source("__constant__ int ROWS; // a", {{"ROWS", {77}}})};
  const auto compiled = kernel->compiled(program);
  ASSERT_TRUE(compiled);
  EXPECT_EQ(compiled->program, program) << "with its own extents";
  ASSERT_EQ(compiled->images.size(), 1U);
  EXPECT_EQ(compiled->images[0].ptx, "ptx of __constant__ int ROWS; // a");
  EXPECT_EQ(program.digest_with(kernel->codes), program.digest());
  program.sources[0].code += " ";
  EXPECT_FALSE(kernel->compiled(program));
  program.sources = {Source("__constant__ int ROWS; // a"), Source("b")};
  EXPECT_FALSE(kernel->compiled(program));
}

TEST(KnownOpenKernels, TheFirstAreForgotten) {
  KnownOpenKernels known;
  const Request first = softmax("f16:5x36"), request = softmax("f32:5x36");
  known.add(first, kernel_of("first"));
  known.add(first, kernel_of("first"));
  EXPECT_EQ(known.of(first).size(), 1U) << "the same kernel";
  for (size_t i = 0; i < KnownOpenKernels::most; ++i) known.add(request, kernel_of(std::to_string(i)));
  EXPECT_TRUE(known.of(first).empty());
  EXPECT_EQ(known.of(request).size(), KnownOpenKernels::most);
  known.add(request, kernel_of("one more"));
  const KnownOpenKernels::Kernels kernels = known.of(request);
  ASSERT_EQ(kernels.size(), KnownOpenKernels::most);
  EXPECT_EQ(kernels.front()->sources.front(), "1");
  EXPECT_EQ(kernels.back()->sources.front(), "one more");
}

TEST(KnownOpenKernels, WhatIsKeptIsNotForgotten) {
  KnownOpenKernels known;
  const Request one = softmax("f16:5x36"), other = softmax("f16:5x36:cn"), request = softmax("f32:5x36");
  const auto added_before = kernel_of("added before"), kept = kernel_of("kept");
  known.add(one, added_before);
  const auto forgotten = kernel_of("forgotten");
  known.add(one, forgotten);
  known.keep({one, one, other}, kept);
  known.keep({one}, kernel_of("added before"));
  EXPECT_EQ(known.of(one), (KnownOpenKernels::Kernels{added_before, forgotten, kept}));
  EXPECT_EQ(known.of(other), (KnownOpenKernels::Kernels{kept}));
  known.add(other, kernel_of("kept"));
  for (size_t i = 0; i <= KnownOpenKernels::most; ++i) known.add(request, kernel_of(std::to_string(i)));
  EXPECT_EQ(known.of(one), (KnownOpenKernels::Kernels{added_before, kept}));
  EXPECT_EQ(known.of(other), (KnownOpenKernels::Kernels{kept}));
  EXPECT_EQ(known.of(request).size(), KnownOpenKernels::most) << "kept ones do not count";
  known.keep({request}, kernel_of("kept, too"));
  known.add(request, kernel_of("one more"));
  EXPECT_EQ(known.of(request).size(), KnownOpenKernels::most + 1);
  EXPECT_EQ(known.of(request).at(KnownOpenKernels::most - 1)->sources.front(), "kept, too");
}

}  // namespace
}  // namespace kiln::known_open_kernels_test
