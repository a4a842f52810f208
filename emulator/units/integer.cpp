// Integer arithmetic, logic, shifts and selections.
#include "integer_ops.h"
#include "lanes.h"
#include "units.h"

namespace kiln::emulator::KILN_EMULATOR_ISA {
namespace {

using ptx::Type;

template <class T, class Op>
Handler one() {
  return map1<Op, T, T>;
}
template <class T, class Op>
Handler two() {
  return map2<Op, T, T, T>;
}
template <class T, class Op>
Handler three() {
  return map3<Op, T, T, T, T>;
}

/// Handlers that every integer width has; T is unsigned or signed.
template <class T>
Handler arithmetic(IntegerOp op) {
  switch (op) {
    case IntegerOp::add:
      return two<T, Add>();
    case IntegerOp::sub:
      return two<T, Sub>();
    case IntegerOp::mul_lo:
      return two<T, MulLo>();
    case IntegerOp::mul_hi:
      return two<T, MulHi>();
    case IntegerOp::mad_lo:
      return three<T, MadLo>();
    case IntegerOp::mad_hi:
      return three<T, MadHi>();
    case IntegerOp::sad:
      return three<T, Sad>();
    case IntegerOp::div:
      return two<T, Div>();
    case IntegerOp::rem:
      return two<T, Rem>();
    case IntegerOp::abs:
      return one<T, Abs>();
    case IntegerOp::neg:
      return one<T, Neg>();
    case IntegerOp::min:
      return two<T, Min>();
    case IntegerOp::max:
      return two<T, Max>();
    case IntegerOp::shr:
      return map2<Shr, T, T, uint32_t>;
    default:
      return nullptr;
  }
}

template <class T>
Handler widening(IntegerOp op) {
  using Wide = typename Wider<T>::type;
  if (op == IntegerOp::mul_wide) return map2<MulWide, Wide, T, T>;
  if (op == IntegerOp::mad_wide) return map3<MadWide, Wide, T, T, Wide>;
  return nullptr;
}

/// Bit patterns: T is unsigned.
template <class T>
Handler bits(IntegerOp op) {
  switch (op) {
    case IntegerOp::move:
      return one<T, Move>();
    case IntegerOp::bit_and:
      return two<T, And>();
    case IntegerOp::bit_or:
      return two<T, Or>();
    case IntegerOp::bit_xor:
      return two<T, Xor>();
    case IntegerOp::bit_not:
      return one<T, Not>();
    case IntegerOp::cnot:
      return one<T, Cnot>();
    case IntegerOp::shl:
      return map2<Shl, T, T, uint32_t>;
    case IntegerOp::slct:
      return map3<Slct, T, T, T, int32_t>;
    case IntegerOp::slct_f32:
      return map3<Slct, T, T, T, float>;
    default:
      return nullptr;
  }
}

template <class T>
const Instruction* select(Warp& warp, const Instruction* i) {
  Result<T> result(warp, i->d, guarded(warp, i));
  T* const d = result.data();
  const T* const a = row<T>(warp, i->a);
  const T* const b = row<T>(warp, i->b);
  const Mask chosen = *row<Mask>(warp, i->c) ^ (i->immediate != 0 ? full_mask : 0);
#pragma GCC ivdep
  for (int lane = 0; lane < 32; ++lane) d[lane] = (chosen >> lane & 1) != 0 ? a[lane] : b[lane];
  result.finish();
  return i + 1;
}

template <class T>
Handler selecting(IntegerOp op) {
  return op == IntegerOp::select ? select<T> : bits<T>(op);
}

/// The instructions that exist for 32 and 64 bits.
template <class T>
Handler fields(IntegerOp op) {
  using U = std::make_unsigned_t<T>;
  switch (op) {
    case IntegerOp::popc:
      return map1<Popc, uint32_t, U>;
    case IntegerOp::clz:
      return map1<Clz, uint32_t, U>;
    case IntegerOp::brev:
      return one<U, Brev>();
    case IntegerOp::bfind:
      return map1<Bfind, uint32_t, T>;
    case IntegerOp::bfind_shift:
      return map1<BfindShift, uint32_t, T>;
    case IntegerOp::bfe:
      return map3<Bfe, T, T, uint32_t, uint32_t>;
    default:
      return nullptr;
  }
}

template <class T>
const Instruction* insert_field(Warp& warp, const Instruction* i) {
  Result<T> result(warp, i->d, guarded(warp, i));
  T* const d = result.data();
  const T* const a = row<T>(warp, i->a);
  const T* const b = row<T>(warp, i->b);
  const uint32_t* const position = row<uint32_t>(warp, i->c);
  const uint32_t* const length = row<uint32_t>(warp, warp.lists[i->extra]);
#pragma GCC ivdep
  for (int lane = 0; lane < 32; ++lane) d[lane] = Bfi::apply(a[lane], b[lane], position[lane], length[lane]);
  result.finish();
  return i + 1;
}

const Instruction* lop3(Warp& warp, const Instruction* i) {
  Result<uint32_t> result(warp, i->d, guarded(warp, i));
  uint32_t* const d = result.data();
  const uint32_t* const a = row<uint32_t>(warp, i->a);
  const uint32_t* const b = row<uint32_t>(warp, i->b);
  const uint32_t* const c = row<uint32_t>(warp, i->c);
  uint32_t term[8];
  for (int k = 0; k < 8; ++k) term[k] = (i->immediate >> k & 1) != 0 ? 0xFFFFFFFFu : 0u;
#pragma GCC ivdep
  for (int lane = 0; lane < 32; ++lane) {
    const uint32_t x = a[lane], y = b[lane], z = c[lane];
    d[lane] = (term[0] & ~x & ~y & ~z) | (term[1] & ~x & ~y & z) | (term[2] & ~x & y & ~z) | (term[3] & ~x & y & z) |
              (term[4] & x & ~y & ~z) | (term[5] & x & ~y & z) | (term[6] & x & y & ~z) | (term[7] & x & y & z);
  }
  result.finish();
  return i + 1;
}

/// dp4a and dp2a: the signedness of b is in the immediate.
template <class Op, class A>
const Instruction* dot(Warp& warp, const Instruction* i) {
  return i->immediate != 0 ? map3<Op, uint32_t, A, int32_t, uint32_t>(warp, i)
                           : map3<Op, uint32_t, A, uint32_t, uint32_t>(warp, i);
}

template <class T>
Handler only_32(IntegerOp op) {
  constexpr bool is_signed = std::is_signed_v<T>;
  switch (op) {
    case IntegerOp::mul24_lo:
      return two<T, Mul24Lo>();
    case IntegerOp::mul24_hi:
      return two<T, Mul24Hi>();
    case IntegerOp::mad24_lo:
      return three<T, Mad24Lo>();
    case IntegerOp::mad24_hi:
      return three<T, Mad24Hi>();
    case IntegerOp::add_sat:
      return is_signed ? two<int32_t, AddSat>() : nullptr;
    case IntegerOp::sub_sat:
      return is_signed ? two<int32_t, SubSat>() : nullptr;
    case IntegerOp::mad_hi_sat:
      return is_signed ? three<int32_t, MadHiSat>() : nullptr;
    case IntegerOp::mad24_hi_sat:
      return is_signed ? three<int32_t, Mad24HiSat>() : nullptr;
    case IntegerOp::szext_clamp:
      return map2<SzextClamp, T, T, uint32_t>;
    case IntegerOp::szext_wrap:
      return map2<SzextWrap, T, T, uint32_t>;
    case IntegerOp::dp4a:
      return dot<Dp4a, T>;
    case IntegerOp::dp2a_lo:
      return dot<Dp2a<0>, T>;
    case IntegerOp::dp2a_hi:
      return dot<Dp2a<2>, T>;
    default:
      return nullptr;
  }
}

Handler only_b32(IntegerOp op) {
  using T = uint32_t;
  switch (op) {
    case IntegerOp::fns:
      return map3<Fns, T, T, T, int32_t>;
    case IntegerOp::bfi:
      return insert_field<T>;
    case IntegerOp::bmsk_clamp:
      return two<T, BmskClamp>();
    case IntegerOp::bmsk_wrap:
      return two<T, BmskWrap>();
    case IntegerOp::lop3:
      return lop3;
    case IntegerOp::shf_l_clamp:
      return three<T, ShfLeftClamp>();
    case IntegerOp::shf_l_wrap:
      return three<T, ShfLeftWrap>();
    case IntegerOp::shf_r_clamp:
      return three<T, ShfRightClamp>();
    case IntegerOp::shf_r_wrap:
      return three<T, ShfRightWrap>();
    case IntegerOp::prmt:
      return three<T, Prmt>();
    case IntegerOp::prmt_f4e:
      return three<T, PrmtForward4>();
    case IntegerOp::prmt_b4e:
      return three<T, PrmtBackward4>();
    case IntegerOp::prmt_rc8:
      return three<T, PrmtReplicate8>();
    case IntegerOp::prmt_ecl:
      return three<T, PrmtEdgeLeft>();
    case IntegerOp::prmt_ecr:
      return three<T, PrmtEdgeRight>();
    case IntegerOp::prmt_rc16:
      return three<T, PrmtReplicate16>();
    default:
      return nullptr;
  }
}

/// u16x2 and s16x2: T is the half.
template <class T>
Handler packed(IntegerOp op) {
  switch (op) {
    case IntegerOp::add:
      return two<uint32_t, Packed<T, Add>>();
    case IntegerOp::sub:
      return two<uint32_t, Packed<T, Sub>>();
    case IntegerOp::min:
      return two<uint32_t, Packed<T, Min>>();
    case IntegerOp::max:
      return two<uint32_t, Packed<T, Max>>();
    case IntegerOp::neg:
      return one<uint32_t, Packed<T, Neg>>();
    case IntegerOp::min_relu:
      return std::is_signed_v<T> ? two<uint32_t, Packed<T, MinRelu>>() : nullptr;
    case IntegerOp::max_relu:
      return std::is_signed_v<T> ? two<uint32_t, Packed<T, MaxRelu>>() : nullptr;
    default:
      return nullptr;
  }
}

Handler first_of(std::initializer_list<Handler> handlers) {
  for (const Handler handler : handlers) {
    if (handler != nullptr) return handler;
  }
  return nullptr;
}

Handler relu_32(IntegerOp op) {
  if (op == IntegerOp::min_relu) return two<int32_t, MinRelu>();
  if (op == IntegerOp::max_relu) return two<int32_t, MaxRelu>();
  return nullptr;
}

}  // namespace

Handler integer(IntegerOp op, Type type) {
  switch (type) {
    case Type::b16:
      return first_of({selecting<uint16_t>(op), op == IntegerOp::shr ? arithmetic<uint16_t>(op) : nullptr});
    case Type::u16:
      return first_of({arithmetic<uint16_t>(op), widening<uint16_t>(op), selecting<uint16_t>(op)});
    case Type::s16:
      return first_of({arithmetic<int16_t>(op), widening<int16_t>(op), selecting<uint16_t>(op)});
    case Type::b32:
      return first_of({selecting<uint32_t>(op), fields<uint32_t>(op), only_b32(op),
                       op == IntegerOp::shr ? arithmetic<uint32_t>(op) : nullptr});
    case Type::u32:
      return first_of({arithmetic<uint32_t>(op), widening<uint32_t>(op), selecting<uint32_t>(op), fields<uint32_t>(op),
                       only_32<uint32_t>(op)});
    case Type::s32:
      return first_of({arithmetic<int32_t>(op), widening<int32_t>(op), selecting<uint32_t>(op), fields<int32_t>(op),
                       only_32<int32_t>(op), relu_32(op)});
    case Type::f32:
      return selecting<uint32_t>(op);
    case Type::b64:
      return first_of({selecting<uint64_t>(op), fields<uint64_t>(op),
                       op == IntegerOp::bfi ? insert_field<uint64_t> : nullptr,
                       op == IntegerOp::shr ? arithmetic<uint64_t>(op) : nullptr});
    case Type::u64:
      return first_of({arithmetic<uint64_t>(op), selecting<uint64_t>(op), fields<uint64_t>(op)});
    case Type::s64:
      return first_of({arithmetic<int64_t>(op), selecting<uint64_t>(op), fields<int64_t>(op)});
    case Type::f64:
      return selecting<uint64_t>(op);
    case Type::u16x2:
      return packed<uint16_t>(op);
    case Type::s16x2:
      return packed<int16_t>(op);
    default:
      return nullptr;
  }
}

}  // namespace kiln::emulator::KILN_EMULATOR_ISA
