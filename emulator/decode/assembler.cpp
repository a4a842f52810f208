#include "decode/assembler.h"

#include <algorithm>

#include "allocation.h"
#include "fusion.h"
#include "liveness.h"
#include "product_runs.h"
#include "scheduler/control_flow.h"

namespace kiln::emulator {
namespace {

/// Merges labels that stand next to each other; returns where each label is.
std::vector<uint32_t> settle_labels(OperationList& list) {
  std::vector<uint32_t> target(list.labels, 0);
  std::vector<Operation> kept;
  kept.reserve(list.operations.size());
  for (Operation& operation : list.operations) {
    const bool label = operation.flow == Operation::Flow::label;
    const bool repeated = label && !kept.empty() && kept.back().flow == Operation::Flow::label;
    if (label) target[operation.label] = static_cast<uint32_t>(kept.size() - (repeated ? 1 : 0));
    if (!repeated) kept.push_back(std::move(operation));
  }
  list.operations = std::move(kept);
  return target;
}

class Assembler {
 public:
  Assembler(OperationList list, const UnitTable& units)
      : units_(units), list_(std::move(list)), target_(settle_labels(list_)) {}

  Assembled run() {
    // Registers that the kernel needs as it was written, before operations move.
    const uint32_t words = allocate(list_, analyse(list_, target_)).peak_words;
    gather_multiply_adds(list_.operations);
    const Liveness liveness = analyse(list_, target_);
    places_ = allocate(list_, liveness);
    code_.register_bytes = places_.bytes;
    code_.static_shared_bytes = list_.static_shared_bytes;
    code_.local_bytes = list_.local_bytes;
    code_.shared_piece_bytes = list_.shared_piece_bytes;
    code_.global_piece_bytes = list_.global_piece_bytes;
    code_.synchronises_in_parts = list_.synchronises_in_parts;
    code_.lists.push_back(0);  // what setp and the like point at when they have no second result
    initial_values(liveness);
    emit_all();
    resolve_branches();
    return {std::move(code_), std::move(values_), std::min(words + reserved_registers, most_registers)};
  }

 private:
  // A rough guess at what ptxas adds for addresses and constants, and the hardware's limit.
  static constexpr uint32_t reserved_registers = 8, most_registers = 255;

  uint32_t at(RegisterId id) const { return id == 0 ? 0 : places_.offset[id]; }

  void initial_values(const Liveness& liveness) {
    const uint64_t dynamic_base = (uint64_t{list_.static_shared_bytes} + list_.dynamic_shared_alignment - 1) /
                                  list_.dynamic_shared_alignment * list_.dynamic_shared_alignment;
    code_.dynamic_shared_offset = static_cast<uint32_t>(dynamic_base);
    for (RegisterId id = 1; id < list_.registers.size(); ++id) {
      const VirtualRegister& r = list_.registers[id];
      const uint32_t bytes = bytes_of(r.width);
      if (r.kind == VirtualRegister::Kind::special) {
        code_.specials.push_back({r.special, at(id), bytes});
      } else if (r.kind == VirtualRegister::Kind::constant && r.width == RegisterClass::predicate) {
        if (r.bits == 0) code_.false_predicates.push_back(at(id));
      } else if (r.kind == VirtualRegister::Kind::constant) {
        code_.constants.push_back({r.bits + (r.dynamic_shared ? dynamic_base : 0), at(id), bytes});
      }
    }
    for (const RegisterId id : liveness.at_entry) {
      const RegisterClass width = list_.registers[id].width;
      code_.zeroed.emplace_back(at(id), width == RegisterClass::predicate ? 4 : bytes_of(width) * warp_lanes);
    }
  }

  void emit_all() {
    emitted_at_.resize(list_.operations.size(), 0);
    for (uint32_t k = 0; k < list_.operations.size();) {
      const Operation& operation = list_.operations[k];
      emitted_at_[k] = static_cast<uint32_t>(code_.fast.size());
      if (operation.flow == Operation::Flow::label) {
        begin_block(operation);
      } else {
        count(operation);
      }
      const uint32_t run = fma_run_length(list_.operations, k);
      if (run > 1) {
        for (uint32_t n = 1; n < run; ++n) count(list_.operations[k + n]);
        emit_run(k, run);
        k += run;
        continue;
      }
      if (const uint32_t products = product_run_length(list_.operations, k); products > 1) {
        for (uint32_t n = 1; n < products; ++n) count(list_.operations[k + n]);
        emit_products(k, products);
        k += products;
        continue;
      }
      if (operation.flow != Operation::Flow::label) emit(operation);
      ++k;
    }
    for (size_t k = 0; k < code_.blocks.size(); ++k) {
      code_.fast[block_starts_[k]].a = code_.blocks[k].length;
      code_.checked[block_starts_[k]].a = code_.blocks[k].length;
    }
  }

  void begin_block(const Operation& operation) {
    Instruction i;
    i.execute = execute_label;
    i.d = static_cast<uint32_t>(code_.blocks.size());
    block_starts_.push_back(static_cast<uint32_t>(code_.fast.size()));
    code_.blocks.emplace_back();
    append(i, i.execute, operation.source, order_weak);
    values_.add(ValueRole::plain, {});
  }

  void count(const Operation& operation) {
    BasicBlock& block = code_.blocks.back();
    ++block.mix[static_cast<size_t>(operation.counted_as)];
    block.multiply_adds += operation.multiply_adds;
    if (operation.counted_as != InstructionClass::free) ++block.length;
  }

  void append(Instruction i, Handler checked, const SourcePosition& source, uint8_t order) {
    code_.fast.push_back(i);
    i.execute = checked;
    code_.checked.push_back(i);
    code_.source.push_back(source);
    code_.order.push_back(order);
  }

  void emit(const Operation& operation) {
    Instruction i;
    i.execute = operation.handlers.fast;
    i.d = at(operation.d);
    i.a = at(operation.a);
    i.b = at(operation.b);
    i.c = operation.c_is_number ? operation.c_number : at(operation.c);
    i.immediate = operation.immediate;
    i.guard = static_cast<uint16_t>(at(operation.guard) / 4);
    i.guard_flip = operation.guard != 0 && operation.guard_negated ? -1 : 0;
    if (operation.flow == Operation::Flow::branch || operation.flow == Operation::Flow::indexed) {
      branches_.push_back({&operation, static_cast<uint32_t>(code_.fast.size())});
    }
    if (!operation.list.empty()) {
      i.extra = static_cast<uint32_t>(code_.lists.size());
      append_list(operation);
    }
    append(i, operation.handlers.checked, operation.source, operation.order);
    add_values(operation);
  }

  void append_list(const Operation& operation) {
    for (const ListEntry& entry : operation.list) {
      const bool is_register = entry.kind == ListEntry::Kind::read || entry.kind == ListEntry::Kind::write;
      code_.lists.push_back(is_register ? at(entry.value) : entry.value);
    }
  }

  void emit_products(uint32_t first, uint32_t length) {
    const Operation& operation = list_.operations[first];
    emit(operation);
    code_.fast.back().c = code_.checked.back().c = length;
    FactorSlots slots;
    for (uint32_t k = 0, begin = code_.fast.back().extra; k < length; ++k) {
      if (k > 0) append_list(list_.operations[first + k]);
      slots.assign(code_.lists.data() + begin);
      begin = static_cast<uint32_t>(code_.lists.size());
    }
  }

  ValueRole role_of(const Operation& operation) const {
    const Handler handler = operation.handlers.fast;
    if (operation.counted_as == InstructionClass::matrix_load ||
        operation.counted_as == InstructionClass::matrix_store) {
      return ValueRole::matrix_access;
    }
    if (handler != operation.handlers.checked) return ValueRole::access;
    for (const ptx::Type width : {ptx::Type::b16, ptx::Type::b32, ptx::Type::b64}) {
      if (handler == units_.integer(IntegerOp::select, width)) return ValueRole::select;
    }
    if (handler == units_.predicate_logic(IntegerOp::bit_and)) return ValueRole::both;
    if (handler == units_.predicate_logic(IntegerOp::bit_or)) return ValueRole::either;
    if (operation.counted_as == InstructionClass::tensor) return ValueRole::matrix_product;
    if (operation.counted_as != InstructionClass::warp_exchange) return ValueRole::plain;
    if (handler == units_.matrix_transpose) return ValueRole::matrix_transpose;
    for (const auto& [op, role] :
         {std::pair(Exchange::shfl_up, ValueRole::shuffle_up), std::pair(Exchange::shfl_down, ValueRole::shuffle_down),
          std::pair(Exchange::shfl_bfly, ValueRole::shuffle_bfly),
          std::pair(Exchange::shfl_idx, ValueRole::shuffle_idx)}) {
      if (handler == units_.exchange(op, ptx::Type::b32)) return role;
    }
    return ValueRole::exchange;
  }

  void add_values(const Operation& operation) {
    const ValueRole role = role_of(operation);
    using Kind = ValueUse::Kind;
    const auto is_number = [](const ListEntry& entry) { return entry.kind == ListEntry::Kind::number; };
    const bool copy =
        role == ValueRole::access && std::any_of(operation.list.begin(), operation.list.end(), is_number);  // cp.async
    std::vector<ValueUse> reads, writes;
    const auto read = [&](RegisterId id, Kind kind) {
      if (id != 0) reads.push_back({kind, at(id)});
    };
    const bool accesses = role == ValueRole::access || role == ValueRole::matrix_access;
    read(operation.a, accesses ? Kind::address : Kind::read);
    read(operation.b, copy ? Kind::address : Kind::read);
    if (!operation.writes_c && !operation.c_is_number) read(operation.c, copy ? Kind::address : Kind::read);
    if (operation.d != 0) writes.push_back({Kind::write, at(operation.d)});
    if (operation.writes_c && operation.c != 0) writes.push_back({Kind::write, at(operation.c)});
    for (const ListEntry& entry : operation.list) {
      if (entry.kind == ListEntry::Kind::read) read(entry.value, Kind::read);
      if (entry.kind == ListEntry::Kind::write && entry.value != 0) writes.push_back({Kind::write, at(entry.value)});
    }
    reads.insert(reads.end(), writes.begin(), writes.end());
    values_.add(role, reads);
  }

  void emit_run(uint32_t first, uint32_t length) {
    std::vector<MultiplyAdd> run;
    for (uint32_t k = first; k < first + length; ++k) {
      const Operation& o = list_.operations[k];
      run.push_back({at(o.d), at(o.a), at(o.b), at(o.c)});
    }
    Instruction i;
    i.execute = units_.fma_run;
    i.extra = static_cast<uint32_t>(code_.lists.size());
    const FusedRun fused = append_run(run, code_.lists);
    i.a = fused.tiles;
    i.b = fused.groups;
    append(i, i.execute, list_.operations[first].source, order_weak);
    std::vector<ValueUse> uses;
    for (const MultiplyAdd& one : run) {
      for (const uint32_t source : {one.a, one.b, one.c}) uses.push_back({ValueUse::Kind::read, source});
      uses.push_back({ValueUse::Kind::write, one.d});
    }
    values_.add(ValueRole::plain, uses);
  }

  void resolve_branches() {
    const auto distance = [&](LabelId label, uint32_t from) {
      return static_cast<int64_t>(emitted_at_[target_[label]]) - static_cast<int64_t>(from);
    };
    for (const auto& [operation, from] : branches_) {
      if (operation->flow == Operation::Flow::branch) {
        code_.fast[from].immediate = code_.checked[from].immediate = distance(operation->label, from);
        continue;
      }
      for (size_t k = 0; k < operation->list.size(); ++k) {
        code_.lists[code_.fast[from].extra + k] = static_cast<uint32_t>(distance(operation->list[k].value, from));
      }
    }
  }

  struct Branch {
    const Operation* operation;
    uint32_t from;
  };

  const UnitTable& units_;
  OperationList list_;
  std::vector<uint32_t> target_;
  Allocation places_;
  Code code_;
  ValueFlow values_;
  std::vector<uint32_t> emitted_at_, block_starts_;
  std::vector<Branch> branches_;
};

}  // namespace

Assembled assemble(OperationList list, const UnitTable& units) {
  return Assembler(std::move(list), units).run();
}

}  // namespace kiln::emulator
