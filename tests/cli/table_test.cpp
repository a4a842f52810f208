#include "table.h"

#include <gtest/gtest.h>

namespace kiln::cli {
namespace {

TEST(Table, AlignsWordsLeftAndNumbersRightWithoutTrailingSpace) {
  Table table({"name", ">count"});
  table.add({"a", "1000"});
  table.add({"longer", "2"});
  EXPECT_EQ(table.print(),
            "name    count\n"
            "a        1000\n"
            "longer      2\n");
}

}  // namespace
}  // namespace kiln::cli
