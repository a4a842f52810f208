// The reference of dropout: Philox against the known answers of its authors, and what the mask is made of.
#include "kiln/generator/operations/dropout.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "call.h"
#include "kiln/reference/philox.h"

namespace kiln::reference::dropout_test {
namespace {

using testing::Each;
using testing::ElementsAre;

// Vectors are those of kat_vectors in Random123, the authors' library.
TEST(Philox, GivesTheKnownAnswers) {
  EXPECT_THAT(philox4x32_10({0, 0, 0, 0}, {0, 0}), ElementsAre(0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8));
  EXPECT_THAT(philox4x32_10({0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}, {0xffffffff, 0xffffffff}),
              ElementsAre(0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd));
  EXPECT_THAT(philox4x32_10({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
              ElementsAre(0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1));
}

std::vector<double> dropped(const std::string& spec, float p, uint64_t seed, uint64_t offset) {
  Call call("dropout x=" + spec);
  call.set("x", std::vector<double>(static_cast<size_t>(call.request.at("x").elements()), 1));
  Bindings bindings = call.bindings();
  bindings.values.operation_scalars = {p};
  bindings.values.operation_integers = {seed, offset};
  return evaluate(call.request, bindings);
}

// The first words of the key 0 and of the counters 0 and 1, as fractions: 0.399, 0.880, 0.736, 0.606; then another
// four.
TEST(DropoutReference, KeepsWhatIsNotBelowP) {
  EXPECT_THAT(dropped("f32:4", 0.5f, 0, 0), ElementsAre(0, 2, 2, 2));
  EXPECT_THAT(dropped("f32:4", 0.75f, 0, 0), ElementsAre(0, 4, 0, 0));
  EXPECT_THAT(dropped("f32:7", 0, 5, 6), Each(1));
  EXPECT_THAT(dropped("f32:7", 1, 5, 6), Each(0));
}

// The first word's upper 24 bits as a fraction of 1, and the next larger number.
TEST(DropoutReference, KeepsWhatIsEqualToP) {
  EXPECT_NE(dropped("f32:1", 0x6627e8p-24F, 0, 0)[0], 0);
  EXPECT_EQ(dropped("f32:1", 0x6627e9p-24F, 0, 0)[0], 0);
}

TEST(DropoutReference, IsTheSameInEveryLayout) {
  EXPECT_EQ(dropped("f32:2x3x4x5:nchw", 0.5f, 7, 8), dropped("f16:2x3x4x5:nhwc", 0.5f, 7, 8));
  EXPECT_EQ(dropped("f32:2x3x4x5:nchw", 0.5f, 7, 8), dropped("f32:120", 0.5f, 7, 8));
}

TEST(DropoutReference, DependsOnEveryBitOfSeedAndOffset) {
  const std::vector<double> mask = dropped("f32:512", 0.5f, 0, 0);
  for (int bit = 0; bit < 64; bit += 9) {
    EXPECT_NE(dropped("f32:512", 0.5f, uint64_t{1} << bit, 0), mask);
    EXPECT_NE(dropped("f32:512", 0.5f, 0, uint64_t{1} << bit), mask);
  }
}

TEST(DropoutReference, DropsItsShare) {
  const std::vector<double> mask = dropped("f32:40000", 0.3f, 1, 2);
  const auto zeros = static_cast<double>(std::count(mask.begin(), mask.end(), 0.0));
  EXPECT_NEAR(zeros / 40000, 0.3, 4 * std::sqrt(0.3 * 0.7 / 40000));
}

}  // namespace
}  // namespace kiln::reference::dropout_test
