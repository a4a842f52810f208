// Nodes of which everything is known while a model is read: shapes, and what is computed of them and of small
// constants.
#pragma once

#include "onnx/node.h"

namespace kiln::onnx_frontend {

/// Computes the node on the host and gives its results, if all that it reads is known there and it is of a kind that
/// shapes are made of; false if not. Floating-point numbers are rounded to their type.
///
/// Throws Error(parse_error) naming the node for element types and ranks that ONNX does not permit, and Refusal where a
/// result of integers is beyond its type.
bool computed_on_host(Node& node);

/// The operations that it knows.
std::vector<std::string> host_operations();

}  // namespace kiln::onnx_frontend
