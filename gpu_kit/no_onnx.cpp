// The carried program reads requests, not models: without ONNX and protobuf it is a tenth of the size. This
// definition stands in front of that in frontends/, which is then not linked.
#include "kiln/base/error.h"
#include "kiln/frontends/onnx.h"

namespace kiln {

OnnxGraph read_onnx(const std::string& path, const OnnxOptions&) {
  throw Error(ErrorCode::unsupported, "this kiln was built without its ONNX frontend: it cannot read " + path,
              "give a requests file; `kiln run` with KILN_RECORD writes one of a model");
}

}  // namespace kiln
