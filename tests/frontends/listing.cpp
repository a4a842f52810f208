#include "listing.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace kiln::test {

models::Lowered lowered(const OnnxModel& model, ModelOptions options) {
  options.layout = ModelLayout::channels_first;
  OnnxModel whole = model;
  if (whole.graph().output().empty() && !whole.graph().node().empty()) {
    whole.output(whole.graph().node().rbegin()->output(0));
  }
  const TemporaryFile file(whole.bytes());
  return models::lower(file.path(), options);
}

std::vector<std::string> steps_of(const OnnxModel& model, const ModelOptions& options) {
  const models::Lowered made = lowered(model, options);
  for (const UncoveredNode& node : made.model.uncovered) ADD_FAILURE() << node.name << ": " << node.reason;
  std::vector<std::string> lines;
  for (const graph::Step& step : made.schedule.steps) lines.push_back(step.request.key());
  return lines;
}

std::vector<std::string> reasons_of(const OnnxModel& model, const ModelOptions& options) {
  std::vector<std::string> lines;
  for (const UncoveredNode& node : lowered(model, options).model.uncovered) {
    lines.push_back(fmt::format("{} {}: {}", node.operation, node.name, node.reason));
  }
  return lines;
}

std::string line(const std::string& request) {
  return Request::parse(request).key();
}

void expect_error(const OnnxModel& model, const std::string& text, ErrorCode code, const ModelOptions& options) {
  try {
    (void)lowered(model, options);
    ADD_FAILURE() << "no error, expected: " << text;
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), code) << error.what();
    EXPECT_THAT(error.message(), testing::HasSubstr(text));
  }
}

}  // namespace kiln::test
