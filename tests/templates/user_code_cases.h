// Checks of variants with user code: what the tests of epilogues and prologues share.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "kiln/generator/request.h"

namespace kiln::testing_support {

/// The default configuration of every algorithm that serves `line`, whose user code is one of `known`, is right, and
/// those of `served_by` are among them.
void expect_served_right(const std::string& line, const std::vector<std::string>& served_by, const Expressions& known);

/// Whether the check of `request` passes the kernels of `made`, which do the wrong thing for it: what must be noticed.
testing::AssertionResult check_as(const Request& request, const Request& made);

}  // namespace kiln::testing_support
