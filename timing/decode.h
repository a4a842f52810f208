// An instruction's name and modifiers as numbers, so that executing it compares no text.
#pragma once

#include <cstdint>
#include <vector>

#include "kiln/timing/sass.h"

namespace kiln::timing {

enum class Op : uint8_t {
  unknown,
  nothing,
  mov,
  iadd3,
  imad,
  lea,
  lop3,
  shf,
  isetp,
  plop3,
  imnmx,
  sel,
  prmt,
  iabs,
  bmsk,
  sgxt,
  popc,
  flo,
  brev,
  s2r,
  cs2r,
  r2ur,
  vote,
  shfl,
  ldc,
  p2r,
  r2p,
  fadd,
  fmul,
  ffma,
  fmnmx,
  fsetp,
  hsetp2,
  mufu,
  i2f,
  f2i,
  hfma2,
  tensor,  // and arithmetic and conversions of pairs of halves: what they compute is data
  syncs,   // of mbarriers
  bulk_copy,
  elect,
  set_registers,
  cluster_wait,
  load,
  store,
  atomic,
  matrix_load,
  matrix_store,
  copy,
  bar,
  bra,
  brx,  // to a place of a table
  bssy,
  bsync,
  brk,
  bmov,
  exit,
  call,
  ret
};

enum class Compare : uint8_t { f, lt, eq, le, gt, ne, ge, t };
enum class Combine : uint8_t { conjunction, disjunction, exclusive };
enum class Function : uint8_t { rcp, rsq, sqrt, ex2, lg2, sin, cos };
enum class Rounding : uint8_t { nearest, truncated, down, up };
enum class Phase : uint8_t { none, init, arrive, wait };
enum class MemorySpace : uint8_t { global, shared, local };

struct Decoded {
  Op op = Op::unknown;
  bool uniform = false;  // runs once for the warp
  bool is_unsigned = false;
  bool wide = false;      // .WIDE: 64-bit result
  bool high = false;      // .HI
  bool extended = false;  // .X, .EX
  bool left = false;
  bool wraps = false;
  bool wide_type = false;  // .U64, .S64
  bool sign_high = false;  // .SX32
  bool sign_extends = false;
  Compare compare = Compare::t;
  bool unordered = false;  // NaN compares as true: NEU, GTU and so on
  Combine combine = Combine::conjunction;
  bool is_signed = false;    // .S32, .S64
  bool other_width = false;  // of MUFU, I2F and F2I: not between 32-bit values
  Function function = Function::cos;
  Rounding rounding = Rounding::nearest;  // of conversions
  MemorySpace space = MemorySpace::global;
  Phase phase = Phase::none;  // what SYNCS does
  uint8_t bytes = 4;          // of a lane's access
  // Operands by their role, as indexes; the destinations stand first in the text.
  int8_t destination = -1;
  std::vector<uint8_t> sources;     // registers, constants, immediates
  std::vector<uint16_t> registers;  // those among them that are whole registers of lanes
  std::vector<uint8_t> predicates;  // predicates that are read
  std::vector<uint8_t> out_predicates;
  int8_t memory = -1;         // the address; of LDGSTS, the one in shared memory
  int8_t second_memory = -1;  // of LDGSTS: the one in global memory
};

Decoded decode(const Instruction& instruction);

/// Matrices of LDSM and STSM, a register of each: 1, 2 or 4.
uint32_t matrices_of(const Instruction& instruction);

/// The operand that is read `number`-th. Throws Error(parse_error) if there are fewer.
const Operand& source(const Instruction& instruction, const Decoded& decoded, size_t number);

/// The register that is written, the first predicate that is, and the operand that stands last. Throw as source() does.
const Operand& destination(const Instruction& instruction, const Decoded& decoded);
const Operand& out_predicate(const Instruction& instruction, const Decoded& decoded);
const Operand& last_operand(const Instruction& instruction);

}  // namespace kiln::timing
