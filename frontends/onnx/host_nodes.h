// Nodes of which everything is known while a model is read: shapes, and what is computed of them and of small
// constants.
#pragma once

#include "onnx/node.h"

namespace kiln::onnx_frontend {

/// Computes the node on the host and gives its results, if all that it reads is known there and it is of a kind that
/// shapes are made of; false if not. Integers are of 64 bits; floating-point numbers are rounded to their type.
bool computed_on_host(Node& node);

}  // namespace kiln::onnx_frontend
