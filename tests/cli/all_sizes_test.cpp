// Open kernels of a line: which sizes are checked.
#include "all_sizes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "kiln/base/environment.h"
#include "kiln/base/error.h"
#include "kiln/runtime/settings.h"

namespace kiln::cli::all_sizes_test {
namespace {

const std::string softmax = "softmax_forward x=f32:?40x?200";

std::vector<OpenLineKernels> of_lines(const std::vector<std::string>& lines) {
  static const Catalogue catalogue = catalogue_of(Environment());
  constexpr DeviceFigures a100{108, 1.41e9, 1.555e12, int64_t{40} << 20};
  return all_sizes_of(lines, catalogue, {Arch::of(8, 0), 13, 0}, a100);
}

TEST(AllSizes, ChecksAFewSizesOfEachKernelFromSmallOnesOn) {
  const OpenLineKernels all = of_lines({softmax}).front();
  const std::vector<SizeToCheck> some = sizes_to_check(all, 3, Arch::of(8, 0));
  size_t checks = 0;
  std::set<std::string> keys;
  for (const SizeToCheck& check : some) {
    checks += check.choices.size();
    EXPECT_TRUE(keys.insert(check.request.key()).second) << check.request.key();
  }
  size_t most = 0;
  for (const OpenLineKernel& kernel : all.kernels) most += std::min<size_t>(3, kernel.sizes.size());
  EXPECT_LE(checks, most);
  EXPECT_GT(checks, most / 2) << "kernels of one choice are checked once for a size";
  size_t every = 0;
  for (const SizeToCheck& check : sizes_to_check(all, 0, Arch::of(8, 0))) every += check.choices.size();
  EXPECT_LE(every, all.sizes());
  size_t sizes = 0;
  for (const OpenLineKernel& kernel : all.kernels) sizes += kernel.sizes.size();
  EXPECT_EQ(all.sizes(), sizes);
  EXPECT_GT(every, 100U);
  const Request first = sizes_to_check(all, 1, Arch::of(8, 0)).front().request;
  for (const Request& size : all.kernels.front().sizes)
    EXPECT_LE(first.operands[0].spec.elements(), size.operands[0].spec.elements());
}

TEST(AllSizes, SizesOfAsManyElementsAsTheLimitAreChecked) {
  const std::string largest = Request::parse("softmax_forward x=f32:2048x1024").key();  // 2^22 of x and y
  const OpenLineKernels all = of_lines({"softmax_forward x=f32:2048x?1024"}).front();
  const std::vector<SizeToCheck> checks = sizes_to_check(all, 0, Arch::of(8, 0));
  EXPECT_NE(std::ranges::find(checks, largest, [](const SizeToCheck& check) { return check.request.key(); }),
            checks.end());
}

TEST(AllSizes, OfLargeSizesTheSmallestIsChecked) {
  const OpenLineKernels all = of_lines({"softmax_forward x=f32:3000000x?"}).front();  // 6 million elements at the least
  const std::vector<SizeToCheck> checks = sizes_to_check(all, 2, Arch::of(8, 0));
  size_t count = 0;
  for (const SizeToCheck& check : checks) count += check.choices.size();
  EXPECT_LE(count, all.kernels.size());
  EXPECT_GT(count, 0U);
  EXPECT_EQ(checks.front().request.operands[0].spec.elements(),
            std::ranges::min(all.kernels.front().sizes, {},
                             [](const Request& size) { return size.operands[0].spec.elements(); })
                .operands[0]
                .spec.elements());
  EXPECT_THROW((void)of_lines({"softmax_forward x=f32:?x? axis=7"}), Error);
  EXPECT_THROW((void)of_lines({"local_conv_forward x=f32:?x4x6x6 w=f32:16x4x3x3 pad=1 grid=2"}), Error);
}

}  // namespace
}  // namespace kiln::cli::all_sizes_test
