// The decoder's intermediate form: operations on virtual registers, before registers have places.
#pragma once

#include <cstdint>
#include <vector>

#include "kernel/instruction.h"
#include "units/unit_table.h"

namespace kiln::emulator {

/// Index into OperationList::registers; 0 is none.
using RegisterId = uint32_t;
using LabelId = uint32_t;

enum class RegisterClass : uint8_t { predicate, b16, b32, b64 };

inline uint32_t bytes_of(RegisterClass c) {
  return c == RegisterClass::predicate ? 4 : c == RegisterClass::b16 ? 2 : c == RegisterClass::b32 ? 4 : 8;
}

struct VirtualRegister {
  enum class Kind : uint8_t { variable, constant, special };
  RegisterClass width = RegisterClass::b32;
  Kind kind = Kind::variable;
  Special special = Special::zero;
  bool dynamic_shared = false;  ///< constant: relative to the start of dynamic shared memory
  uint64_t bits = 0;            ///< constant
};

/// One entry of an operand list.
struct ListEntry {
  enum class Kind : uint8_t { read, write, number, label };
  Kind kind = Kind::number;
  uint32_t value = 0;
};

struct Operation {
  enum class Flow : uint8_t {
    next,
    label,    ///< `label` is its own
    branch,   ///< to `label` where the guard holds
    indexed,  ///< to one of the labels in `list`
    exit,
  };
  HandlerPair handlers;
  RegisterId d = 0;                ///< written
  RegisterId a = 0, b = 0, c = 0;  ///< read, unless `writes_c`
  bool writes_c = false;
  bool fusable = false;  ///< fma.rn.f32
  bool joins = false;    ///< a matrix product that may run together with others of its kind
  /// Instead of register `c`, a plain number.
  bool c_is_number = false;
  uint32_t c_number = 0;
  RegisterId guard = 0;
  bool guard_negated = false;
  Flow flow = Flow::next;
  InstructionClass counted_as = InstructionClass::free;
  uint32_t multiply_adds = 0;  ///< of a matrix product
  uint8_t order = order_weak;  ///< MemoryOrder bits
  LabelId label = 0;
  int64_t immediate = 0;
  std::vector<ListEntry> list;
  SourcePosition source;
};

/// A kernel's operations in order.
struct OperationList {
  std::vector<VirtualRegister> registers{1};  // [0] is none
  std::vector<Operation> operations;
  LabelId labels = 0;
  uint32_t static_shared_bytes = 0;
  uint32_t dynamic_shared_alignment = 16;
  uint32_t local_bytes = 0;
  uint32_t shared_piece_bytes = 16, global_piece_bytes = 16;  ///< see Code
  bool synchronises_in_parts = false;
};

}  // namespace kiln::emulator
