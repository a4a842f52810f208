// Which virtual registers hold a value that is still needed, and from where to where.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "decode/operation.h"

namespace kiln::emulator {

/// Calls visit(register, is_write) for every register of an operation, reads first. A write under a guard leaves other
/// lanes alone, so that it counts as a read, too.
template <class Visit>
void visit_registers(const Operation& operation, Visit visit) {
  const bool keeps = operation.guard != 0;
  const auto write = [&](RegisterId id) {
    if (keeps) visit(id, false);
    visit(id, true);
  };
  if (operation.guard != 0) visit(operation.guard, false);
  if (operation.a != 0) visit(operation.a, false);
  if (operation.b != 0) visit(operation.b, false);
  if (operation.c != 0 && !operation.writes_c) visit(operation.c, false);
  for (const ListEntry& entry : operation.list) {
    if (entry.kind == ListEntry::Kind::read && entry.value != 0) visit(entry.value, false);
  }
  if (operation.d != 0) write(operation.d);
  if (operation.c != 0 && operation.writes_c) write(operation.c);
  for (const ListEntry& entry : operation.list) {
    if (entry.kind == ListEntry::Kind::write && entry.value != 0) write(entry.value);
  }
}

/// From first to last need, in positions: operation k reads at 2k and writes at 2k + 1. first > last: never needed.
struct Interval {
  uint32_t first = UINT32_MAX;
  uint32_t last = 0;
};

struct Liveness {
  std::vector<Interval> intervals;   ///< by register
  std::vector<RegisterId> at_entry;  ///< may be read before they are written
};

/// `list` must have a label operation in front of every basic block. `target[label]` is the label's operation.
Liveness analyse(const OperationList& list, const std::vector<uint32_t>& target);

}  // namespace kiln::emulator
