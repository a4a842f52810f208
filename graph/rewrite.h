// Tools of all passes: reading calls, and putting others in their place.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "edges.h"
#include "kiln/graph/graph.h"

namespace kiln::graph {

/// The tensor without gaps that a value is; one of one element where it has no dimensions.
TensorSpec spec_of(const Value& value);

/// The word of an attribute; null if the call has none of that name.
const std::string* word_of(const Call& call, std::string_view attribute);
/// Whether the call has user code, stages or scales.
bool is_plain(const Call& call);
/// Whether an attribute makes the call end in a function, behind its epilogue.
bool has_fused_activation(const Call& call);
/// The call's request with tensors without gaps; nothing if its operation does not take it so.
std::optional<Request> request_of(const Graph& graph, const Call& call);
/// Whether its operation takes the call as it is, of tensors without gaps.
bool is_legal(const Graph& graph, const Call& call);
/// The node at `index` as a view that only reshapes; null if it is none, or there is no index.
const View* reshape_at(const Graph& graph, std::optional<size_t> index);
/// The constant behind views that only reshape it, up to 256 of them.
std::optional<ValueId> constant_behind(const Graph& graph, const Edges& edges, ValueId id);
/// The number that a constant of one element is, reshaped or not.
std::optional<float> number_of(const Graph& graph, const Edges& edges, ValueId id);

/// Whether a pass may leave a value of the type unstored, because storing does no more than round it. Integers
/// saturate, and who makes numbers of 8 bits wants their rounding.
bool may_stay_unstored(DType dtype);

/// The elements of a constant.
std::vector<double> elements_of(const Graph& graph, ValueId id);
/// Adds a constant, rounded once to `dtype`.
ValueId constant_of(Graph& graph, DType dtype, Extents extents, const std::vector<double>& elements);

/// The operand of that name, or null.
Operand* find(std::vector<Operand>& operands, std::string_view name);
const Operand* find(const std::vector<Operand>& operands, std::string_view name);

/// Adds to `origins` those of `more` that are not there yet.
void append_origins(std::vector<std::string>& origins, const std::vector<std::string>& more);

}  // namespace kiln::graph
