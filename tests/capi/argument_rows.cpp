#include "argument_rows.h"

#include <gmock/gmock.h>

namespace kiln::capi {

void expect_refused(const std::vector<Case>& cases) {
  for (const Case& bad : cases) {
    EXPECT_EQ(bad.call(), bad.status) << bad.message;
    EXPECT_THAT(kiln_last_error(), testing::HasSubstr(bad.message));
  }
}

}  // namespace kiln::capi
