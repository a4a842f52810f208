// The carried program reads requests, not models: without ONNX and protobuf it is a tenth of the size. These
// definitions stand in front of those in frontends/, which are then not linked.
#include <utility>

#include "kiln/base/error.h"
#include "kiln/frontends/onnx.h"

namespace kiln {

OnnxFile::OnnxFile(std::string path) : path_(std::move(path)) {
  throw Error(ErrorCode::unsupported, "this kiln was built without its ONNX frontend: it cannot read " + path_,
              "give a requests file; `kiln run` with KILN_RECORD writes one of a model");
}

// There is no file to ask.
OnnxInputs OnnxFile::inputs(std::optional<DType>) const {
  return {};
}

OnnxGraph OnnxFile::read(const OnnxOptions&) const {
  return {};
}

OnnxGraph read_onnx(const std::string& path, const OnnxOptions& options) {
  return OnnxFile(path).read(options);
}

}  // namespace kiln
