// The stored request that is nearest to one that is missed.
#include "why_miss.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace kiln::cli::why_miss_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

const std::string h200 = "name=\"NVIDIA H200\" cc=9.0 sms=132 emulated=no";
const std::string a100 = "name=\"NVIDIA A100\" cc=8.0 sms=108 emulated=no";

TEST(WhyMiss, NamesThePartsThatDiffer) {
  const std::string here = "conv_forward x=f32:1x3x8x8:nchw w=f32:4x3x3x3:nchw@4 pad=1,1 deterministic";
  EXPECT_THAT(request_differences(here, here), IsEmpty());
  EXPECT_THAT(request_differences(here, "conv_forward x=f16:1x3x9x8:nhwc w=f32:4x3x3x3:nchw pad=0,0 tf32"),
              ElementsAre(Difference{"x dtype", "f32", "f16"}, Difference{"x extents", "1x3x8x8", "1x3x9x8"},
                          Difference{"x layout", "nchw", "nhwc"}, Difference{"w alignment", "4", "-"},
                          Difference{"pad", "1,1", "0,0"}, Difference{"deterministic", "yes", "-"},
                          Difference{"tf32", "-", "yes"}));
  EXPECT_THAT(request_differences("reduce x=f32:4 epilogue=user:12ab", "pool x=f32:4:c epilogue=relu residual=f32:4"),
              ElementsAre(Difference{"operation", "reduce", "pool"}, Difference{"epilogue", "user:12ab", "relu"},
                          Difference{"x layout", "-", "c"}, Difference{"residual dtype", "-", "f32"},
                          Difference{"residual extents", "-", "4"}));
  EXPECT_THAT(request_differences("reduce x=f32:4@8", "reduce x=f32:5:n@4"),
              ElementsAre(Difference{"x extents", "4", "5"}, Difference{"x alignment", "8", "4"},
                          Difference{"x layout", "-", "n"}));
  EXPECT_THAT(device_differences(h200, a100),
              ElementsAre(Difference{"device name", "\"NVIDIA H200\"", "\"NVIDIA A100\""},
                          Difference{"device cc", "9.0", "8.0"}, Difference{"device sms", "132", "108"}));
}

TEST(WhyMiss, TakesFewestPartsThenNearestExtentsThenTheDevice) {
  const std::string request = "softmax x=f32:64x1000 y=f32:64x1000 axis=1";
  const StoredRequest far{"softmax x=f32:64x10 y=f32:64x10 axis=1", h200, "the database"};
  const StoredRequest near{"softmax x=f32:64x1001 y=f32:64x1001 axis=1", a100, "pack a.pack"};
  const StoredRequest half{"softmax x=f16:64x1000 y=f16:64x1000 axis=1", h200, "the database"};
  const StoredRequest other{"reduce x=f32:64x1000", h200, "the database"};
  const StoredRequest rank{"softmax x=f32:64x1000x1 y=f32:64x1000x1 axis=1", h200, "the database"};
  const Miss miss = why_missed(request, h200, {half, far, rank, other, near});
  ASSERT_TRUE(miss.nearest);
  EXPECT_EQ(miss.nearest->request, near.request);
  EXPECT_THAT(miss.why, HasSubstr("the nearest of 5 is in pack a.pack"));
  ASSERT_EQ(miss.differences.size(), 5U);
  EXPECT_EQ(miss.differences[0], (Difference{"x extents", "64x1000", "64x1001"}));
  EXPECT_EQ(miss.differences[2].part, "device name");
  const StoredRequest near_here{near.request, h200, "the database"};
  EXPECT_EQ(why_missed(request, h200, {near, near_here}).nearest->device, h200);
  EXPECT_THAT(why_missed(request, a100, {{request, h200, "the database"}}).why,
              HasSubstr("the database has records of this request, but of another device"));
  EXPECT_THAT(why_missed(request, h200, {{request, h200, "the database"}}).why, HasSubstr("on this device"));
  const StoredRequest empty{"softmax x=f32:0x1000 y=f32:0x1000 axis=1", h200, "the database"};
  EXPECT_EQ(why_missed("softmax x=f32:1x1000 y=f32:1x1000 axis=1", h200, {half, empty, far}).nearest->request,
            empty.request)
      << "0 is near to 1";
  EXPECT_EQ(why_missed(request, h200, {other}).why, "no softmax is stored among 1 requests");
  EXPECT_EQ(why_missed(request, h200, {}).why, "nothing is stored at all");
}

// Databases and packs are from outside.
TEST(WhyMiss, TakesAnyText) {
  const std::string request = "softmax x=f32:64x1000 axis=1";
  for (const char* odd : {"", " ", "softmax", "softmax =", "softmax x=", "softmax x=:", "softmax x=f32:x",
                          "softmax x=f32:xx:@", "softmax \"x", "softmax x=f32:99999999999999999999999999x1",
                          "softmax x=f32:0x0", "=", "softmax ====", "softmax x=f32:1x axis="}) {
    const Miss miss = why_missed(request, h200, {{odd, odd, odd}});
    EXPECT_FALSE(miss.why.empty());
    (void)text_of(miss, {});
    (void)why_missed(odd, odd, {{request, h200, "the database"}});
  }
}

/// Place "a" or "b", of `first` or of `second`, that is nearer to the request.
std::string nearest(const std::string& request, const std::string& first, const std::string& second) {
  return why_missed(request, h200, {{first, h200, "a"}, {second, h200, "b"}}).nearest->where;
}

TEST(WhyMiss, StridesFollowFromExtents) {
  EXPECT_EQ(nearest("softmax x=f32:64x1000:1000,1", "softmax x=f16:64x1000:1000,1", "softmax x=f32:64x1001:1001,1"),
            "b");
}

TEST(WhyMiss, OperandsThatOneLacksHaveNoDistance) {
  EXPECT_EQ(nearest("softmax x=f32:4 a=f32:4 b=f32:4 p=1 q=1 r=1", "softmax x=f32:4 p=1 q=1 r=1",
                    "softmax x=f32:4 a=f32:4 b=f32:4 p=2 q=2 r=2"),
            "b");
}

TEST(WhyMiss, NothingIsNearToOne) {
  EXPECT_EQ(nearest("softmax x=f32:1x1000", "softmax x=f32:64x1000", "softmax x=f32:0x1000"), "b");
}

TEST(WhyMiss, TheFirstOfEqualOnesIsNamed) {
  EXPECT_EQ(nearest("softmax x=f32:4 p=1", "softmax x=f32:4 p=2", "softmax x=f32:4 p=3"), "a");
}

TEST(WhyMiss, AnAlignmentMayFollowExtents) {
  EXPECT_THAT(request_differences("reduce x=f32:4@8", "reduce x=f32:4@4"),
              ElementsAre(Difference{"x alignment", "8", "4"}));
}

}  // namespace
}  // namespace kiln::cli::why_miss_test
