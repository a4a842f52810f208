// The carried program reads requests, not models: without ONNX and protobuf it is a tenth of the size. These
// definitions stand in front of those in frontends/, which are then not linked.
#include "kiln/base/error.h"
#include "kiln/frontends/onnx.h"
#include "kiln/frontends/onnx_graph.h"

namespace kiln {

namespace {

[[noreturn]] void refuse(const std::string& path) {
  throw Error(ErrorCode::unsupported, "this kiln was built without its ONNX frontend: it cannot read " + path,
              "give a requests file; `kiln run` with KILN_RECORD writes one of a model");
}

}  // namespace

ModelListing read_onnx(const std::string& path, const OnnxOptions&) {
  refuse(path);
}

OnnxGraph read_onnx_graph(const std::string& path, const OnnxGraphOptions&) {
  refuse(path);
}

}  // namespace kiln
