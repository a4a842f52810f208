// How many objects protobuf is going to make of a model's file.
#pragma once

#include <cstddef>
#include <string>

namespace kiln::onnx_frontend {

/// Messages, texts and unknown fields of the model in the file, or `most` + 1 where there are more. Two bytes of a file
/// can be a message, which takes a hundred times as much memory when it is parsed. Stops where the file is no model,
/// which parsing says better.
size_t count_messages(const std::string& path, size_t most);

}  // namespace kiln::onnx_frontend
