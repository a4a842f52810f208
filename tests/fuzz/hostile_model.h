// Hostile models: legal ones, with extents, constants, types, ranks, attributes, names and data that nobody expects.
#pragma once

#include <onnx/onnx_pb.h>

#include "choices.h"

namespace kiln::fuzz {

/// A model that the choices make. Every operation that the front reads, computes on the host or refuses is among its
/// nodes. Some models are legal, many nearly so, so that they get far.
onnx::ModelProto hostile_model(Choices& choices);

}  // namespace kiln::fuzz
