#include "json.h"

#include <gtest/gtest.h>

namespace kiln::cli::json_test {
namespace {

TEST(Json, OfPairsThatBeginWithTextIsAnObjectInTheirOrder) {
  Json json = {{"name", "conv"}, {"count", 3}, {"seconds", 0.5}, {"best", nullptr}, {"nodes", std::vector<int>{1, 2}}};
  EXPECT_EQ(json.line(), R"({"name":"conv","count":3,"seconds":0.5,"best":null,"nodes":[1,2]})");
  json.set("count", {{"of", true}});
  json.set("last", Json::object());
  json.erase("seconds");
  EXPECT_EQ(json.line(), R"({"name":"conv","count":{"of":true},"best":null,"nodes":[1,2],"last":{}})");
}

TEST(Json, OfOtherElementsIsAnArray) {
  EXPECT_EQ(Json({"a", "b"}).line(), R"(["a","b"])");
  EXPECT_EQ(Json({{"a", 1}, {2, 3}}).line(), R"([["a",1],[2,3]])");
  EXPECT_EQ(Json::array().line(), "[]");
  EXPECT_EQ(Json(Json::parse("[1, [2]]")).size(), 2U);
}

TEST(Json, IsACopyOfItsOwn) {
  Json list = Json::array();
  const Json before = list;
  list.push_back(1);
  list.push_back(before);
  EXPECT_EQ(list.line(), "[1,[]]");
  EXPECT_EQ(before.line(), "[]");
}

TEST(Json, MendsTextThatIsNotUtf8) {
  EXPECT_EQ(Json("caf\xe9").line(), "\"caf\xef\xbf\xbd\"");
}

}  // namespace
}  // namespace kiln::cli::json_test
