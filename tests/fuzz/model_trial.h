// All that is done with a model before anything is compiled.
#pragma once

#include <string>
#include <string_view>

#include "choices.h"

namespace kiln::fuzz {

/// Reads, lowers and plans models, as kiln::Model and `kiln tune` do. They lie in a folder of their own with the files
/// that they may name for their data: whole ones, one of a terabyte of holes, links out of the folder, a pipe.
class ModelTrial {
 public:
  ModelTrial();
  ~ModelTrial();
  ModelTrial(const ModelTrial&) = delete;
  ModelTrial& operator=(const ModelTrial&) = delete;

  /// `stage: words`, where the stage says how far the model got: file, nodes, lowering, planning; uncovered, accepted.
  /// The options that the model is loaded with are chosen. Throws whatever is not a kiln::Error; check() of the rest.
  std::string run(std::string_view bytes, Choices& choices) const;

 private:
  std::string folder_;
};

}  // namespace kiln::fuzz
