#include "kiln/base/nearest.h"

#include <gmock/gmock.h>

#include <array>

namespace kiln::nearest_test {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr std::array<std::string_view, 5> names = {"conv_forward", "pool_forward", "pool_backward", "pad", "axis"};

TEST(NearestNames, CountsEditsAndSwappedNeighbours) {
  EXPECT_EQ(edit_distance("", ""), 0U);
  EXPECT_EQ(edit_distance("", "abc"), 3U);
  EXPECT_EQ(edit_distance("pad", "pad"), 0U);
  EXPECT_EQ(edit_distance("pda", "pad"), 1U) << "a swap is one edit";
  EXPECT_EQ(edit_distance("apd", "pad"), 1U);
  EXPECT_EQ(edit_distance("ab", "ba"), 1U);
  EXPECT_EQ(edit_distance("abc", "cab"), 2U) << "no neighbours";
  EXPECT_EQ(edit_distance("strid", "stride"), 1U);
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3U);
  EXPECT_EQ(edit_distance("sitting", "kitten"), 3U);
}

TEST(NearestNames, AreThoseOfFewestEdits) {
  EXPECT_THAT(nearest_names("conv_foward", names), ElementsAre("conv_forward"));
  EXPECT_THAT(nearest_names("pool_forwrad", names), ElementsAre("pool_forward"));
  EXPECT_THAT(nearest_names("axes", names), ElementsAre("axis"));
  EXPECT_THAT(nearest_names("pads", names), ElementsAre("pad"));
  EXPECT_THAT(nearest_names("pd", names), ElementsAre("pad")) << "one edit may lead to a name from the shortest word";
  EXPECT_THAT(nearest_names("pol_forwrd", names), ElementsAre("pool_forward")) << "one for every three letters";
  EXPECT_THAT(nearest_names("con_forwrt", names), ElementsAre("conv_forward")) << "three of ten letters";
  EXPECT_THAT(nearest_names("aksys", names), IsEmpty()) << "two of five letters";
}

TEST(NearestNames, AreAllOfAsManyEditsThreeAtMost) {
  constexpr std::array<std::string_view, 5> similar = {"pads", "dad", "pat", "bad", "lad"};
  EXPECT_THAT(nearest_names("pad", similar), ElementsAre("pads", "dad", "pat"));
  EXPECT_THAT(nearest_names("lad", similar), ElementsAre("lad"));
  EXPECT_THAT(nearest_names("bat", similar), ElementsAre("pat", "bad"));
}

TEST(NearestNames, AreElseThoseThatBeginWithTheWord) {
  EXPECT_THAT(nearest_names("conv", names), ElementsAre("conv_forward"));
  EXPECT_THAT(nearest_names("pool", names), ElementsAre("pool_forward", "pool_backward"));
}

TEST(NearestNames, DoNotGuessAtWordsThatResembleNothing) {
  EXPECT_THAT(nearest_names("transmogrify", names), IsEmpty());
  EXPECT_THAT(nearest_names("x", names), IsEmpty());
  EXPECT_THAT(nearest_names("", names), IsEmpty());
  constexpr std::array<std::string_view, 1> short_name = {"n"};
  EXPECT_THAT(nearest_names("x", short_name), IsEmpty()) << "every letter is another";
  EXPECT_THAT(nearest_names("pad", {}), IsEmpty());
}

TEST(NearestNames, AreAskedForInWords) {
  EXPECT_EQ(did_you_mean("axi", names), "did you mean axis?");
  EXPECT_EQ(did_you_mean("pool", names), "did you mean pool_forward or pool_backward?");
  EXPECT_EQ(did_you_mean("transmogrify", names, "known are ..."), "known are ...");
}

}  // namespace
}  // namespace kiln::nearest_test
