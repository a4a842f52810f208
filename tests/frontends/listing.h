// Result of models::lower() for a model, as lines to compare.
#pragma once

#include <string>
#include <vector>

#include "kiln/base/error.h"
#include "kiln/models/lower.h"
#include "onnx_model.h"

namespace kiln::test {

/// As lower() does, but in logical order, so that requests are short to write. A model without outputs gives the first
/// of its last node.
models::Lowered lowered(const OnnxModel& model, ModelOptions options = {});

/// The key of each step. Expects that all nodes are covered.
std::vector<std::string> steps_of(const OnnxModel& model, const ModelOptions& options = {});
/// `Relu y: reason` for each node that is not covered.
std::vector<std::string> reasons_of(const OnnxModel& model, const ModelOptions& options = {});
/// The key that `request` has when it is complete.
std::string line(const std::string& request);

/// Expects that reading the model throws an error of that code, whose message holds `text`.
void expect_error(const OnnxModel& model, const std::string& text, ErrorCode code = ErrorCode::parse_error,
                  const ModelOptions& options = {});

}  // namespace kiln::test
