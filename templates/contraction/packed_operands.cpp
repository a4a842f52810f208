#include "contraction/packed_operands.h"

#include <algorithm>
#include <numeric>
#include <utility>
#include <variant>

#include "descriptor/numbers.h"
#include "descriptor/prelude_and_launch.h"
#include "descriptor/strided.h"

namespace kiln::descriptor {
namespace {

constexpr int piece_bytes = 16;
constexpr int packing_threads = 256;

// Elements of a group.
int64_t inner_of_group(const TensorSpec& spec, const PackedRole& role) {
  return spec.extents[static_cast<size_t>(role.inner)] / role.groups;
}

// Neighbours that one copy moves: what is not filled up may have fewer.
int64_t piece_of(const TensorSpec& spec, const PackedRole& role) {
  const int64_t piece = piece_bytes / size_of(spec.dtype);
  return role.is_filled_up ? piece : std::gcd(piece, inner_of_group(spec, role));
}

int64_t padded(const TensorSpec& spec, const PackedRole& role) {
  const int64_t piece = piece_of(spec, role);
  return ceil_div(inner_of_group(spec, role), piece) * piece * role.groups;
}

// Whether copies of such pieces can take the operand as it is. Filters may run along either of their dimensions.
bool is_copied(const TensorSpec& spec, const PackedRole& role) {
  const TensorSpec axes = with_three_axes(spec);
  const int64_t piece = piece_of(axes, role);
  if (padded(axes, role) != axes.extents[static_cast<size_t>(role.inner)]) return false;
  return vector_fits(axes, {role.inner}, piece) || (role.is_weights && vector_fits(axes, {1 - role.inner}, piece));
}

// Bytes in packed order. As floating point: the extents of a hostile request may be anything.
double size_of_packed(const TensorSpec& spec, const PackedRole& role) {
  double bytes = static_cast<double>(padded(spec, role)) * size_of(spec.dtype);
  for (size_t i = 0; i < spec.extents.size(); ++i) {
    if (i != static_cast<size_t>(role.inner)) bytes *= static_cast<double>(spec.extents[i]);
  }
  return bytes;
}

// The packed order of `spec`, whose spatial dimensions it keeps.
TensorSpec packed(TensorSpec spec, const PackedRole& role) {
  const auto inner = static_cast<size_t>(role.inner), outer = 1 - inner;
  spec.extents[inner] = padded(spec, role);
  spec.strides[inner] = 1;
  int64_t stride = spec.extents[inner];
  for (size_t i = spec.extents.size(); i-- > 2;) {
    spec.strides[i] = stride;
    stride *= spec.extents[i];
  }
  spec.strides[outer] = stride;
  spec.alignment = default_alignment;
  spec.canonicalise();
  return spec;
}

// Whether neighbouring pixels stand closer together than what is packed.
bool pixels_are_inner(const PackedOperand& operand) {
  const TensorSpec& from = operand.from;
  const auto is_closer = [&](size_t dimension) {
    return from.extents[dimension] > 1 &&
           from.strides[dimension] < from.strides[static_cast<size_t>(operand.role.inner)];
  };
  return is_closer(dimension::column) || is_closer(dimension::row) || is_closer(dimension::plane);
}

int64_t pixels_of_a_thread(const PackedOperand& operand) {
  constexpr int64_t most = 4;
  const TensorSpec& from = operand.from;
  const int64_t pixels =
      from.extents[dimension::plane] * from.extents[dimension::row] * from.extents[dimension::column];
  if (!pixels_are_inner(operand) || pixels < most) return 1;
  return widest_vector(from, {dimension::column, dimension::row, dimension::plane}, most);
}

Prelude packing_prelude(const PackedOperand& operand) {
  const TensorSpec &from = operand.from, &to = operand.to;
  const auto inner = static_cast<size_t>(operand.role.inner), outer = 1 - inner;
  const int64_t groups = operand.role.groups;
  Prelude prelude;
  prelude.type("Element", from.dtype).index_type("Index", needs_wide_index({&from, &to}));
  prelude.constant("OUTER", from.extents[outer]);
  prelude.constant("INNER", from.extents[inner] / groups).constant("PADDED", to.extents[inner] / groups);
  prelude.constant("GROUPS", groups).constant("PIECE", piece_of(to, operand.role)).constant("THREADS", packing_threads);
  const char* const names[] = {"PLANE", "ROW", "COLUMN"};
  for (size_t i = 0; i < std::size(names); ++i) {
    const std::string name = names[i];
    prelude.constant(name + "S", from.extents[2 + i]).constant(name + "_STRIDE", from.strides[2 + i]);
  }
  prelude.constant("OUTER_STRIDE", from.strides[outer]).constant("INNER_STRIDE", from.strides[inner]);
  const int64_t of_inner = std::gcd(piece_of(to, operand.role), from.extents[inner] / groups);
  prelude.flag("PIXELS_INNER", pixels_are_inner(operand)).constant("PIXELS", pixels_of_a_thread(operand));
  prelude.constant("INNER_RUN", pixels_are_inner(operand) ? 1 : widest_vector(from, {operand.role.inner}, of_inner));
  return prelude;
}

Launch packing_launch(const PackedOperand& operand, const WorkspaceArgument& packed) {
  const TensorSpec& to = operand.to;
  const auto outer = static_cast<size_t>(1 - operand.role.inner);
  // Weights may be prepared: their launch takes nothing that differs from call to call.
  Launch launch = launch_of(operand.dynamic_n ? "pack_images" : "pack_operand", packing_threads,
                            {OperandArgument{operand.role.name}, packed});
  if (operand.dynamic_n) append(launch, {Scalar::n});
  const int64_t per_outer = to.elements() / std::max<int64_t>(to.extents[outer], 1);
  const int64_t threads = per_outer / piece_of(to, operand.role) / pixels_of_a_thread(operand);
  launch.grid[0] = blocks_for(threads, to.extents[outer], operand.dynamic_n, packing_threads);
  return launch;
}

// The memory of what `operands` has packed, in place of that operand; what used the workspace begins behind.
void read_packed(std::vector<Argument>& arguments, const std::vector<PackedOperand>& operands,
                 const std::vector<WorkspaceArgument>& packed, int64_t bytes) {
  for (Argument& argument : arguments) {
    if (auto* workspace = std::get_if<WorkspaceArgument>(&argument)) workspace->offset += bytes;
    const auto* operand = std::get_if<OperandArgument>(&argument);
    for (size_t i = 0; operand != nullptr && i < operands.size(); ++i) {
      if (operand->name != operands[i].role.name) continue;
      argument = packed[i];
      break;
    }
  }
}

}  // namespace

int64_t PackedOperand::bytes() const {
  return aligned_bytes(to.elements() * size_of(to.dtype));
}

PackedRequest with_packed_operands(const Request& request, const std::vector<PackedRole>& roles) {
  constexpr double most_bytes = 2.0 * (1 << 30);
  PackedRequest result{request, {}};
  double bytes = 0;
  for (const PackedRole& role : roles) {
    for (Operand& operand : result.request.operands) {
      if (operand.name != role.name) continue;
      TensorSpec& spec = operand.spec;
      if (is_copied(spec, role)) continue;
      bytes += size_of_packed(spec, role);
      if (bytes > most_bytes) return {request, {}, true};
      const TensorSpec to = packed(spec, role);
      result.operands.push_back({role, with_three_axes(spec), with_three_axes(to),
                                 request.dynamic_batch && !role.is_weights,
                                 request.constant_weights && role.is_weights});
      spec = to;
    }
  }
  // Weights first: they are prepared.
  std::stable_partition(result.operands.begin(), result.operands.end(),
                        [](const PackedOperand& operand) { return operand.role.is_weights; });
  return result;
}

Program behind_packing(const std::vector<PackedOperand>& operands, Program program, const Emitter& emit) {
  std::vector<WorkspaceArgument> packed;
  int64_t bytes = 0;
  for (const PackedOperand& operand : operands) {
    packed.push_back({bytes, operand.bytes()});
    bytes += operand.bytes();
  }
  for_each_launch(program.steps, [&](Launch& launch) { read_packed(launch.arguments, operands, packed, bytes); });
  std::vector<Step> first;
  for (size_t i = 0; i < operands.size(); ++i) {
    Launch launch = packing_launch(operands[i], packed[i]);
    launch.source = program.sources.size();
    program.sources.push_back(emit.plain_source(packing_template, packing_prelude(operands[i])));
    first.emplace_back(std::move(launch));
    if (operands[i].role.is_weights) program.preparation = {i + 1, packed[i].offset + packed[i].bytes};
  }
  program.steps.insert(program.steps.begin(), first.begin(), first.end());
  return program;
}

double packed_bytes(const std::vector<PackedOperand>& operands) {
  double bytes = 0;
  for (const PackedOperand& operand : operands) {
    if (operand.is_prepared) continue;
    bytes += static_cast<double>(operand.from.elements() + operand.to.elements()) * size_of(operand.to.dtype);
  }
  return bytes;
}

int packing_launches(const std::vector<PackedOperand>& operands) {
  return static_cast<int>(std::count_if(operands.begin(), operands.end(),
                                        [](const PackedOperand& operand) { return !operand.is_prepared; }));
}

}  // namespace kiln::descriptor
