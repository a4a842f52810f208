// The decoder's view of the execution units: a handler for an operation on a type. The units exist once per host
// instruction set; unit_table() gives the best one that this CPU can run.
#pragma once

#include <cstdint>
#include <vector>

#include "kernel/instruction.h"
#include "ptx/type.h"

namespace kiln::emulator {

/// Operations on integers and bit patterns. Unless said otherwise d = op(a, b, c) on the type's lanes.
enum class IntegerOp : uint8_t {
  move,
  add,
  add_sat,  ///< s32
  sub,
  sub_sat,  ///< s32
  mul_lo,
  mul_hi,
  mul_wide,  ///< d is twice as wide
  mad_lo,
  mad_hi,
  mad_hi_sat,  ///< s32
  mad_wide,    ///< c and d are twice as wide
  mul24_lo,
  mul24_hi,
  mad24_lo,
  mad24_hi,
  mad24_hi_sat,  ///< s32
  sad,
  div,
  rem,
  abs,
  neg,
  min,
  max,
  min_relu,
  max_relu,
  popc,         ///< d: 32 bits
  clz,          ///< d: 32 bits
  bfind,        ///< d: 32 bits
  bfind_shift,  ///< d: 32 bits
  fns,          ///< b32: mask, base, offset
  brev,
  bfe,  ///< b, c: 32 bits
  bfi,  ///< d = insert a into b at c, length in the register lists[extra] (32 bits both)
  szext_clamp,
  szext_wrap,
  bmsk_clamp,
  bmsk_wrap,
  dp4a,  ///< a signedness in the type, b's in the immediate (1: signed); d, c: 32 bits
  dp2a_lo,
  dp2a_hi,
  bit_and,
  bit_or,
  bit_xor,
  bit_not,
  cnot,
  lop3,  ///< the table is the immediate
  shl,   ///< b: 32 bits
  shr,   ///< b: 32 bits
  shf_l_clamp,
  shf_l_wrap,
  shf_r_clamp,
  shf_r_wrap,
  prmt,  ///< c selects; also prmt_* below
  prmt_f4e,
  prmt_b4e,
  prmt_rc8,
  prmt_ecl,
  prmt_ecr,
  prmt_rc16,
  select,    ///< d = c ? a : b, c a predicate, negated if the immediate is 1
  slct,      ///< d = c >= 0 ? a : b, c: s32
  slct_f32,  ///< the same, c: f32
};

/// Extended precision: the carry is a predicate of its own.
enum class CarryOp : uint8_t { add, sub, mad_lo, mad_hi };

enum class Compare : uint8_t { eq, ne, lt, le, gt, ge, lo, ls, hi, hs, equ, neu, ltu, leu, gtu, geu, num, nan };

/// How a comparison's outcome p joins a further predicate; in Instruction::immediate of setp and set.
enum CompareJoin : int64_t {
  join_none = 0,
  join_and = 1,
  join_or = 2,
  join_xor = 3,
  join_mask = 3,
  join_negate = 4,    ///< the further predicate, `c`, is negated
  join_true_at = 32,  ///< set: the upper half of the immediate is what true looks like
};

enum class FloatOp : uint8_t {
  add,
  sub,
  mul,
  fma,
  div,
  div_approx,  ///< f32, of a denominator up to 2^126
  min,
  max,
  min_nan,
  max_nan,
  min_xorsign,
  max_xorsign,
  min_nan_xorsign,
  max_nan_xorsign,
  abs,
  neg,
  rcp,
  sqrt,
  rsqrt,
  sin,
  cos,
  lg2,
  ex2,
  tanh,
  copysign,  ///< d = b with a's sign
};

enum class Rounding : uint8_t { nearest, zero, down, up, away, none };

struct FloatTraits {
  bool flush = false;     ///< .ftz
  bool saturate = false;  ///< .sat: to [0, 1], NaN to 0
  bool relu = false;
  Rounding rounding = Rounding::nearest;
};

enum class TestOp : uint8_t { finite, infinite, number, notanumber, normal, subnormal };

/// cvt. Narrow integers (8 bits) stand in 16-bit registers.
struct Conversion {
  ptx::Type to = ptx::Type::none;
  ptx::Type from = ptx::Type::none;
  Rounding rounding = Rounding::none;
  bool to_integer = false;  ///< .rni and the like: round to an integral value
  bool flush = false;
  bool saturate = false;
  bool relu = false;
  bool satfinite = false;
};

enum class Exchange : uint8_t {
  shfl_up,  ///< d = a of the lane found from b and c; lists[extra]: member mask register, predicate or 0
  shfl_down,
  shfl_bfly,
  shfl_idx,
  vote_all,  ///< d (predicate) from predicate a (negated if the immediate is 1), member mask in b
  vote_any,
  vote_uni,
  vote_ballot,  ///< d: 32 bits
  activemask,
  match_any,  ///< d: 32 bits, a: 32 or 64 bits, member mask in b
  match_all,  ///< also c: predicate or 0
  redux_add,  ///< d, a: 32 bits, member mask in b
  redux_min,  ///< of f32: the immediate has ReduxFloat bits
  redux_max,
  redux_and,
  redux_or,
  redux_xor,
  elect,  ///< d: 32 bits (leader), c: predicate, member mask in b
};

/// Modifiers of redux on f32: magnitudes are compared; one NaN makes the result one.
enum ReduxFloat : int64_t { redux_abs = 1, redux_nan = 2 };

/// mma: the product of a `rows` x k and a k x 8 matrix, added to a `rows` x 8 matrix of sums, by all lanes of a warp.
struct MatrixProduct {
  ptx::Type a = ptx::Type::f16, b = ptx::Type::f16;  ///< of the factors' elements
  ptx::Type sum = ptx::Type::f32;
  uint32_t rows = 16, k = 8;
  bool saturates = false;  ///< s32 sums
  /// The chip whose arithmetic floating-point sums follow: its compute capability, 10 x major + minor. 0: none, but
  /// fused multiply-adds in the order of k.
  int hardware = 0;
};

/// ldmatrix and stmatrix of shared memory. The addresses are register a (address_bytes wide) plus the immediate.
struct MatrixAccess {
  uint32_t address_bytes = 4;
  uint32_t matrices = 1;  ///< 1, 2, 4
  bool transposed = false;
};

/// A load or store. The address is register a (address_bytes wide) plus the immediate.
struct Access {
  ptx::Space space = ptx::Space::generic;
  uint32_t address_bytes = 8;
  uint32_t bytes = 4;     ///< of one element
  uint32_t elements = 1;  ///< 1, 2, 4, 8; their registers are lists[extra ...], or d (load) and b (store) for one
  uint32_t register_bytes = 4;
  bool sign_extend = false;
  bool strong = false;  ///< volatile, or with an explicit memory order
};

enum class AtomicOp : uint8_t { add, exch, cas, min, max, inc, dec, bit_and, bit_or, bit_xor };

/// Address in register a, operand b, and c: cas stores c where b is found.
struct Atomic {
  AtomicOp op = AtomicOp::add;
  ptx::Type type = ptx::Type::u32;
  ptx::Space space = ptx::Space::generic;
  uint32_t address_bytes = 8;
  bool returns = true;
};

/// Null handlers mean that the operation does not exist for the type.
struct UnitTable {
  const char* name;  ///< "avx512", "avx2" or "baseline"
  Handler (*integer)(IntegerOp op, ptx::Type type);
  /// d = a op b op carry-in (predicate c, 0: none); carry-out to predicate lists[extra] (0: none); mad: further source
  /// lists[extra + 1].
  Handler (*carry)(CarryOp op, ptx::Type type);
  /// setp: predicate d from a and b of `type`, its complement's predicate b2 = lists[extra] (0: none). For f16x2 and
  /// bf16x2, d is the outcome of the low halves and lists[extra] that of the high ones.
  Handler (*compare)(Compare compare, ptx::Type type, bool flush);
  /// set on pairs of halves: both outcomes into the halves of d. Other forms of set are a setp and a selection.
  Handler (*set_pair)(Compare compare, ptx::Type type, bool flush);
  Handler (*predicate_logic)(IntegerOp op);
  /// d from the `parts` registers in lists[extra ...], lowest first; and those from a.
  Handler (*pack)(uint32_t part_bytes, uint32_t parts);
  Handler (*unpack)(uint32_t part_bytes, uint32_t parts);
  /// The immediate must be the rounding.
  Handler (*floating)(FloatOp op, ptx::Type type, const FloatTraits& traits);
  Handler (*test)(TestOp op, ptx::Type type);
  /// A run of fma.rn.f32 without guard: lists[extra ...] holds `a` tiles and `b` groups; see units/fma_run.cpp.
  Handler fma_run;
  /// Its immediate must be conversion_steps(conversion).
  Handler (*convert)(const Conversion& conversion);
  int64_t (*conversion_steps)(const Conversion& conversion);
  Handler (*exchange)(Exchange op, ptx::Type type);
  /// `c` products in order, all of this kind: lists[extra ...] are ProductOperands.
  Handler (*matrix_product)(const MatrixProduct& product);
  /// lists[extra ...] are MatrixRows.
  HandlerPair (*matrix_load)(const MatrixAccess& access);
  HandlerPair (*matrix_store)(const MatrixAccess& access);
  Handler matrix_transpose;  ///< movmatrix: d = a transposed
  HandlerPair (*load)(const Access& access);
  HandlerPair (*store)(const Access& access);
  HandlerPair (*atomic)(const Atomic& atomic);
  /// cp.async: to shared register a plus lists[extra + 1], from global register b plus the immediate, lists[extra]
  /// bytes of which register c says how many to read (0: all).
  HandlerPair (*copy_async)(uint32_t shared_address_bytes);
};

/// An instruction set of the host, and the units compiled for it.
struct UnitSet {
  const char* name;        ///< "avx512", "avx2" or "baseline"
  const UnitTable* table;  ///< null if the units cannot run here
  const char* missing;     ///< why not; else empty
};

/// All sets, best first.
std::vector<UnitSet> unit_sets();

/// The tables that can run here, best first.
std::vector<const UnitTable*> unit_tables();

/// The best of them. REQUIRES: there is one.
const UnitTable& unit_table();

}  // namespace kiln::emulator
