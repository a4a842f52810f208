#include "argument_rows.h"

#include <gmock/gmock.h>

namespace kiln::capi {

void expect_refused(const std::vector<Case>& cases) {
  for (const Case& bad : cases) {
    EXPECT_EQ(bad.call(), bad.status) << bad.message;
    EXPECT_THAT(kiln_last_error(), testing::HasSubstr(bad.message));
  }
}

void ArgumentRows::add_null(size_t position) {
  rows_.push_back({fmt::format("{}: {} is NULL", name_, names_[position]),
                   [call = call_, position] { return call(position, nullptr); }});
}

void ArgumentRows::add_tensor(size_t position, const kiln_tensor& good) {
  const std::string& tensor = names_[position];
  const auto row = [&](const std::string& message, const auto& edit) { add_row(message, position, with(good, edit)); };
  for (const kiln_dtype dtype : {-1, 99}) {
    row(fmt::format("{}: the dtype of {} is {}", name_, tensor, dtype), [&](auto& t) { t.dtype = dtype; });
  }
  for (const int32_t rank : {INT32_MIN, 0, 7, INT32_MAX}) {
    row(fmt::format("{}: the rank of {} is {}, expected 1 to 6", name_, tensor, rank), [&](auto& t) { t.rank = rank; });
  }
  const std::string about = fmt::format("{}: {}: a tensor has ", name_, tensor);
  row(about + "the negative extent -3", [](auto& t) { t.extents[0] = -3; });
  row(about + "the negative stride -1", [](auto& t) { t.strides[t.rank - 1] = -1; });
  row(about + "more than 2^58 elements", [](auto& t) { t.extents[0] = t.strides[0] = INT64_MAX; });
  if (keeps_tensors_) return;
  row(fmt::format("{} is a null pointer", tensor), [](auto& t) { t.data = nullptr; });
  row(fmt::format("{} has alignment 1", tensor), [](auto& t) { t.data = static_cast<const char*>(t.data) + 1; });
}

}  // namespace kiln::capi
