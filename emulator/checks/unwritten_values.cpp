#include "checks/unwritten_values.h"

#include <algorithm>
#include <bit>
#include <utility>
#include <vector>

#include "checks/fault.h"
#include "kernel/matrix_product.h"
#include "kernel/matrix_rows.h"
#include "warp/fragments.h"

namespace kiln::emulator {
namespace {

/// The lanes that do not wait for others of their member mask.
Mask complete_lanes(const Warp& warp, uint32_t member_offset, Mask lanes) {
  const uint32_t* const members = row<uint32_t>(warp, member_offset);
  Mask complete = 0;
  for (uint32_t lane = 0; lane < warp_lanes; ++lane) {
    complete |= static_cast<Mask>((members[lane] & warp.live & ~lanes) == 0) << lane;
  }
  return complete & lanes;
}

/// The lane that a shuffle reads, itself out of range.
uint32_t shuffle_source(ValueRole role, uint32_t lane, uint32_t b, uint32_t c) {
  const auto own = static_cast<int>(lane), segments = static_cast<int>(c >> 8 & 31), clamp = static_cast<int>(c & 31),
             distance = static_cast<int>(b & 31);
  const int limit = (own & segments) | (clamp & ~segments);
  const int from = role == ValueRole::shuffle_up     ? own - distance
                   : role == ValueRole::shuffle_down ? own + distance
                   : role == ValueRole::shuffle_bfly ? own ^ distance
                                                     : (own & segments) | (distance & ~segments);
  return static_cast<uint32_t>((role == ValueRole::shuffle_up ? from >= limit : from <= limit) ? from : own) & 31;
}

/// The lanes that have a part of the rows of which `lanes` have one: row r is in lanes 4 r to 4 r + 3.
Mask lanes_of_rows(Mask lanes) {
  const Mask rows = (lanes | lanes >> 1 | lanes >> 2 | lanes >> 3) & 0x11111111u;
  return rows * 0xF;
}

/// The lanes that have, in C and D, the columns of which `lanes` have a part in B: the even ones, or the odd ones.
/// Column c is in lanes 4 c to 4 c + 3 of B, and in every fourth lane from c / 2 on of C and D.
Mask lanes_of_columns(Mask lanes, uint32_t parity) {
  Mask found = 0;
  for (uint32_t column = parity; column < 8; column += 2) {
    if ((lanes >> (4 * column) & 0xF) != 0) found |= 0x11111111u << (column / 2);
  }
  return found;
}

/// The lanes with the addresses of those rows of a matrix of which `lanes` have an element.
Mask lanes_with_rows_of(const MatrixRows& operands, uint32_t matrix, Mask lanes) {
  Mask found = 0;
  for (uint32_t row = 0; row < MatrixRows::rows; ++row) {
    if ((operands.lanes_of_row(row) & lanes) != 0) found |= Mask{1} << (matrix * MatrixRows::rows + row);
  }
  return found;
}

bool has(std::span<const ValueUse> uses, ValueUse::Kind kind) {
  return std::any_of(uses.begin(), uses.end(), [&](const ValueUse& use) { return use.kind == kind; });
}

/// Whether an access both stores and loads.
bool updates(std::span<const ValueUse> uses) {
  return has(uses, ValueUse::Kind::read) && has(uses, ValueUse::Kind::write);
}

}  // namespace

UnwrittenValues::UnwrittenValues(const Block& block, const ValueFlow& flow)
    : flow_(flow), registers_(block.code->register_bytes / 4 + 1), warp_count_(block.warps.size()), origins_(1) {}

void UnwrittenValues::begin_block() {
  warps_.clear();
  origins_.resize(1);
  stored_.clear();
}

void UnwrittenValues::begin_following(Warp& warp, const Instruction* i) {
  if (warps_.empty()) warps_.resize(warp_count_);
  Followed& state = warps_[warp.index];
  state.followed = true;
  state.lanes.resize(registers_);
  state.origins.resize(registers_);
  add_ready(warp, i, warp.active);
  warp.active = 0;
}

void UnwrittenValues::set(const Warp& warp, uint32_t offset, Mask lanes, const Unwritten& value) {
  Followed& state = warps_[warp.index];
  Mask& known = state.lanes[offset / 4];
  known = (known & ~lanes) | (value.lanes & lanes);
  if ((value.lanes & lanes) != 0) state.origins[offset / 4] = value.origin;
}

bool UnwrittenValues::report(Warp& warp, const Instruction* i, const Unwritten& value, std::string_view where) {
  if (value.lanes == 0) return true;
  unwritten_use_fault(warp, i, origins_[value.origin], where);
  return false;
}

bool UnwrittenValues::can_follow(const Block& block, const Instruction* i, const AccessRequest& request) const {
  return request.kind == AccessKind::load &&
         has(flow_.uses(static_cast<size_t>(i - block.first)), ValueUse::Kind::write);
}

uint32_t UnwrittenValues::element_bytes(size_t at, const AccessRequest& request, ValueUse::Kind kind) const {
  const std::span<const ValueUse> uses = flow_.uses(at);
  const auto elements = std::count_if(uses.begin(), uses.end(), [&](const ValueUse& use) { return use.kind == kind; });
  return request.bytes / static_cast<uint32_t>(std::max<std::ptrdiff_t>(elements, 1));
}

void UnwrittenValues::mark(Warp& warp, const Instruction* i, const AccessRequest& request, Mask lanes,
                           const std::function<bool(uint32_t offset, uint32_t bytes)>& is_unwritten,
                           const std::function<void()>& report) {
  const auto at = static_cast<size_t>(i - warp.block->first);
  const uint64_t address = request.address[static_cast<size_t>(std::countr_zero(lanes))];
  if (flow_.role(at) == ValueRole::matrix_access) return mark_matrices(warp, i, address, lanes, is_unwritten, report);
  const uint32_t bytes = element_bytes(at, request, ValueUse::Kind::write);
  uint32_t offset = 0;
  for (const ValueUse& use : flow_.uses(at)) {
    if (use.kind != ValueUse::Kind::write) continue;
    if (is_unwritten(offset, bytes)) {
      set(warp, use.offset, lanes, {lanes, origin_at(warp, address + offset, report)});
    }
    offset += bytes;
  }
}

/// Where the unwritten value at `address` comes from: where one that was stored there did, else this step, whose fault
/// `report` makes.
UnwrittenValues::Origin UnwrittenValues::origin_at(Warp& warp, uint64_t address, const std::function<void()>& report) {
  const auto stored = stored_.find(address);
  if (stored != stored_.end()) return stored->second;
  if (of_this_step_ != 0) return of_this_step_;
  report();
  of_this_step_ = static_cast<Origin>(origins_.size());
  origins_.push_back(std::move(*warp.block->fault));
  warp.block->fault.reset();
  return of_this_step_;
}

/// The same as mark() for ldmatrix, where other lanes get what is at a lane's address.
void UnwrittenValues::mark_matrices(Warp& warp, const Instruction* i, uint64_t address, Mask lanes,
                                    const std::function<bool(uint32_t offset, uint32_t bytes)>& is_unwritten,
                                    const std::function<void()>& report) {
  const MatrixRows operands(warp.lists + i->extra);
  const uint32_t bytes = operands.is_transposed() ? 2 : 4;  // of a row in one lane
  for (uint32_t offset = 0; offset < MatrixRows::row_bytes; offset += bytes) {
    if (!is_unwritten(offset, bytes)) continue;
    const Origin origin = origin_at(warp, address + offset, report);
    for (Mask rest = lanes; rest != 0; rest &= rest - 1) {
      const auto lane = static_cast<uint32_t>(std::countr_zero(rest)), row = lane % MatrixRows::rows;
      const uint32_t getter = operands.is_transposed() ? 4 * (offset / bytes) + row / 2 : 4 * row + offset / bytes;
      const Mask bit = Mask{1} << getter;
      set(warp, operands.matrix(lane / MatrixRows::rows), bit, {bit, origin});
    }
  }
}

bool UnwrittenValues::can_keep(const Block& block, const Instruction* i, const AccessRequest& request) const {
  return request.kind == AccessKind::store && flow_.role(static_cast<size_t>(i - block.first)) == ValueRole::access;
}

bool UnwrittenValues::may_store(Warp& warp, const Instruction* i, Mask lanes) {
  if (!is_followed(warp)) return true;
  const auto at = static_cast<size_t>(i - warp.block->first);
  uint32_t index = 0;
  for (const ValueUse& use : flow_.uses(at)) {
    if (use.kind != ValueUse::Kind::read) continue;
    Unwritten value = of(warp, use.offset);
    if (flow_.role(at) == ValueRole::matrix_access) {
      value.lanes = lanes_with_rows_of(MatrixRows(warp.lists + i->extra), index++, value.lanes);
    }
    if (!report(warp, i, {value.lanes & lanes, value.origin}, "stored here")) return false;
  }
  return true;
}

/// Marks written registers by the reads in front of them: the reads since the previous writes.
void UnwrittenValues::pass_on(const Warp& warp, std::span<const ValueUse> uses, Mask lanes, Unwritten& last) {
  bool again = false;
  for (const ValueUse& use : uses) {
    if (use.kind == ValueUse::Kind::write) {
      set(warp, use.offset, lanes, last);
      again = true;
      continue;
    }
    if (again) last = {};
    again = false;
    Unwritten value = of(warp, use.offset);
    value.lanes &= lanes;
    last.join(value);
  }
}

/// The result of an instruction in which lanes see each other's values.
UnwrittenValues::Unwritten UnwrittenValues::exchanged(const Warp& warp, const Instruction* i, ValueRole role,
                                                      std::span<const ValueUse> uses, Mask lanes) const {
  Unwritten own;  // what a lane's own operands make of it
  for (size_t k = role == ValueRole::exchange ? 0 : 1; k < uses.size(); ++k) {
    Unwritten value = of(warp, uses[k].offset);
    value.lanes &= uses[k].kind == ValueUse::Kind::read ? lanes : 0;
    own.join(value);
  }
  if (role == ValueRole::exchange) return {own.lanes != 0 ? full_mask : 0, own.origin};
  const Unwritten source = of(warp, uses[0].offset);
  Unwritten found{0, source.origin};
  for (uint32_t lane = 0; lane < warp_lanes; ++lane) {
    const uint32_t from = shuffle_source(role, lane, row<uint32_t>(warp, i->b)[lane], row<uint32_t>(warp, i->c)[lane]);
    found.lanes |= (source.lanes & lanes) >> from & 1 ? Mask{1} << lane : 0;
  }
  own.join(found);
  return own;
}

/// Marks the results of a matrix product: each depends on its row of A, its column of B and its element of C.
void UnwrittenValues::multiply(const Warp& warp, const ProductOperands& operands) {
  Unwritten column[2];  // of even and of odd columns: the lanes that have them in C and D
  for (uint32_t group = 0; group < operands.groups(); ++group) {
    const Unwritten b = of(warp, operands.b(group));
    for (uint32_t parity = 0; parity < 2; ++parity) column[parity].join({lanes_of_columns(b.lanes, parity), b.origin});
  }
  std::vector<std::pair<uint32_t, Unwritten>> results;  // D may be in the registers of what it comes from
  for (uint32_t tile = 0; tile < operands.tiles(); ++tile) {
    Unwritten row;
    for (uint32_t group = 0; group < operands.groups(); ++group) {
      const Unwritten a = of(warp, operands.a(tile, group));
      row.join({lanes_of_rows(a.lanes), a.origin});
    }
    for (uint32_t part = 0; part < operands.parts(); ++part) {
      Unwritten result = of(warp, operands.c(tile, part));
      result.join(row);
      result.join(column[part]);
      if (operands.parts() == 1) result.join(column[1]);
      results.emplace_back(operands.d(tile, part), result);
    }
  }
  for (const auto& [d, result] : results) set(warp, d, full_mask, result);
}

/// The result of movmatrix: lane l gets elements 2 (l % 4) and the next of column l / 4.
UnwrittenValues::Unwritten UnwrittenValues::transposed(const Warp& warp, const Instruction* i) const {
  const Unwritten from = of(warp, i->a);
  Unwritten result{0, from.origin};
  for (uint32_t lane = 0; lane < warp_lanes; ++lane) {
    const uint32_t first = 4 * (2 * (lane % 4)) + lane / 4 / 2;
    if ((from.lanes >> first & 1) != 0 || (from.lanes >> (first + 4) & 1) != 0) result.lanes |= Mask{1} << lane;
  }
  return result;
}

/// Executes an access to memory, at the addresses of the lanes in `addressed`. The access itself looks at the values
/// that it stores, and marks those that it loads. The result of an atomic may take the place of a value that it stores,
/// so it is noted after the access.
const Instruction* UnwrittenValues::access(Warp& warp, const Instruction* i, std::span<const ValueUse> uses, Mask lanes,
                                           Mask addressed) {
  for (const ValueUse& use : uses) {
    Unwritten address = of(warp, use.offset);
    address.lanes &= use.kind == ValueUse::Kind::address ? addressed : 0;
    if (!report(warp, i, address, "an address here")) return nullptr;
  }
  const bool behind = updates(uses);
  if (!behind) write(warp, uses, lanes, {});
  const Instruction* const next = i->execute(warp, i);
  if (behind) write(warp, uses, lanes, {});
  return next;
}

/// Everything that is written is `value`.
void UnwrittenValues::write(const Warp& warp, std::span<const ValueUse> uses, Mask lanes, const Unwritten& value) {
  for (const ValueUse& use : uses) {
    if (use.kind == ValueUse::Kind::write) set(warp, use.offset, lanes, value);
  }
}

/// The result of a selection: the value that the predicate chooses.
UnwrittenValues::Unwritten UnwrittenValues::selected(const Warp& warp, const Instruction* i) const {
  const Mask flip = i->immediate != 0 ? full_mask : 0, holds = *row<Mask>(warp, i->c) ^ flip;
  Unwritten value = of(warp, i->c), a = of(warp, i->a), b = of(warp, i->b);
  a.lanes &= holds;
  b.lanes &= ~holds;
  value.join(a);
  value.join(b);
  return value;
}

/// The result of two predicates joined: one of them may decide whatever the other is.
UnwrittenValues::Unwritten UnwrittenValues::joined(const Warp& warp, const Instruction* i, ValueRole role) const {
  const Mask flip = role == ValueRole::both ? 0 : full_mask;
  const Mask a_open = *row<Mask>(warp, i->a) ^ flip, b_open = *row<Mask>(warp, i->b) ^ flip;
  Unwritten a = of(warp, i->a), b = of(warp, i->b);
  const Mask matters_a = b_open | b.lanes, matters_b = a_open | a.lanes;
  a.lanes &= matters_a;
  b.lanes &= matters_b;
  a.join(b);
  return a;
}

/// Executes an instruction that all lanes of a warp must execute together.
const Instruction* UnwrittenValues::step_of_warp(Warp& warp, const Instruction* i, ValueRole role,
                                                 std::span<const ValueUse> uses, Mask lanes) {
  if (lanes != full_mask) return i->execute(warp, i);  // they wait for others, and come here again
  if (role == ValueRole::matrix_access) {
    return access(warp, i, uses, lanes, MatrixRows(warp.lists + i->extra).addressed());
  }
  if (role == ValueRole::matrix_product) {
    ProductOperands operands(warp.lists + i->extra);
    for (uint32_t n = 0; n < i->c; ++n, operands = operands.next()) multiply(warp, operands);
  }
  if (role == ValueRole::matrix_transpose) set(warp, i->d, lanes, transposed(warp, i));
  return i->execute(warp, i);
}

const Instruction* UnwrittenValues::step(Warp& warp, const Instruction* i) {
  const auto at = static_cast<size_t>(i - warp.block->first);
  of_this_step_ = 0;
  Unwritten guard = of(warp, 4u * i->guard);
  guard.lanes &= warp.active;
  if (!report(warp, i, guard, "decides here")) return nullptr;
  const Mask lanes = guarded(warp, i);
  const std::span<const ValueUse> uses = flow_.uses(at);
  if (lanes == 0 || uses.empty()) return i->execute(warp, i);
  switch (const ValueRole role = flow_.role(at)) {
    case ValueRole::access:
      return access(warp, i, uses, lanes, lanes);
    case ValueRole::select:
      write(warp, uses, lanes, selected(warp, i));
      break;
    case ValueRole::both:
    case ValueRole::either:
      write(warp, uses, lanes, joined(warp, i, role));
      break;
    case ValueRole::matrix_access:
    case ValueRole::matrix_product:
    case ValueRole::matrix_transpose:
      return step_of_warp(warp, i, role, uses, lanes);
    case ValueRole::plain: {
      Unwritten value;
      pass_on(warp, uses, lanes, value);
      if (!has(uses, ValueUse::Kind::write) && !report(warp, i, value, "used here")) return nullptr;
      break;
    }
    default: {  // lanes that wait for others come here again
      const auto member = std::find_if(uses.rbegin(), uses.rend(),
                                       [](const ValueUse& use) { return use.kind == ValueUse::Kind::read; });
      const Mask complete = member == uses.rend() ? lanes : complete_lanes(warp, member->offset, lanes);
      write(warp, uses, complete, exchanged(warp, i, role, uses, lanes));
      break;
    }
  }
  return i->execute(warp, i);
}

}  // namespace kiln::emulator
