// The error that an action throws, for tests of messages.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "kiln/base/error.h"

namespace kiln {

/// Runs `action` and returns the kiln::Error of type E that it throws; fails the test if it throws none.
template <typename E = Error, typename Action>
E error_of(Action action) {
  try {
    action();
  } catch (const E& error) {
    return error;
  }
  ADD_FAILURE() << "no error was thrown";
  if constexpr (std::is_same_v<E, Error>) {
    return Error(ErrorCode::internal, "");
  } else {
    return E({}, "");
  }
}

}  // namespace kiln
