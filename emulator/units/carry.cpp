// Extended-precision integer arithmetic: add.cc, addc, sub.cc, subc, mad.cc, madc. CC.CF is a predicate.
#include "integer_ops.h"
#include "lanes.h"
#include "units.h"

namespace kiln::emulator::KILN_EMULATOR_ISA {
namespace {

/// x + y + carry, the carry in and out.
template <class T>
T add_carry(T x, T y, bool& carry) {
  T sum = 0, all = 0;
  const bool first = __builtin_add_overflow(x, y, &sum);
  const bool second = __builtin_add_overflow(sum, static_cast<T>(carry), &all);
  carry = first || second;
  return all;
}

template <class T>
T subtract_borrow(T x, T y, bool& borrow) {
  T difference = 0, all = 0;
  const bool first = __builtin_sub_overflow(x, y, &difference);
  const bool second = __builtin_sub_overflow(difference, static_cast<T>(borrow), &all);
  borrow = first || second;
  return all;
}

template <CarryOp op, class T>
const Instruction* with_carry(Warp& warp, const Instruction* i) {
  using U = std::make_unsigned_t<T>;
  Result<U> result(warp, i->d, guarded(warp, i));
  U* const d = result.data();
  const T* const a = row<T>(warp, i->a);
  const T* const b = row<T>(warp, i->b);
  const U* const addend = row<U>(warp, warp.lists[i->extra + 1]);
  const Mask carry_in = i->c != 0 ? *row<Mask>(warp, i->c) : 0;
  Mask carry_out = 0;
  for (int lane = 0; lane < 32; ++lane) {
    bool carry = (carry_in >> lane & 1) != 0;
    if constexpr (op == CarryOp::add) d[lane] = add_carry<U>(a[lane], b[lane], carry);
    if constexpr (op == CarryOp::sub) d[lane] = subtract_borrow<U>(a[lane], b[lane], carry);
    if constexpr (op == CarryOp::mad_lo) d[lane] = add_carry<U>(MulLo::apply(a[lane], b[lane]), addend[lane], carry);
    if constexpr (op == CarryOp::mad_hi) d[lane] = add_carry<U>(MulHi::apply(a[lane], b[lane]), addend[lane], carry);
    carry_out |= static_cast<Mask>(carry) << lane;
  }
  result.finish();
  if (warp.lists[i->extra] != 0) set_predicate(warp, warp.lists[i->extra], carry_out, guarded(warp, i));
  return i + 1;
}

template <CarryOp op>
Handler for_type(ptx::Type type) {
  switch (type) {
    case ptx::Type::u32:
    case ptx::Type::b32:
      return with_carry<op, uint32_t>;
    case ptx::Type::s32:
      return with_carry<op, int32_t>;
    case ptx::Type::u64:
    case ptx::Type::b64:
      return with_carry<op, uint64_t>;
    case ptx::Type::s64:
      return with_carry<op, int64_t>;
    default:
      return nullptr;
  }
}

}  // namespace

Handler carry(CarryOp op, ptx::Type type) {
  switch (op) {
    case CarryOp::add:
      return for_type<CarryOp::add>(type);
    case CarryOp::sub:
      return for_type<CarryOp::sub>(type);
    case CarryOp::mad_lo:
      return for_type<CarryOp::mad_lo>(type);
    case CarryOp::mad_hi:
      return for_type<CarryOp::mad_hi>(type);
  }
  return nullptr;
}

}  // namespace kiln::emulator::KILN_EMULATOR_ISA
