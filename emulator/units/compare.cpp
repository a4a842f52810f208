// setp, set, and logic on predicates.
#include "lanes.h"
#include "numerics.h"
#include "units.h"

namespace kiln::emulator::KILN_EMULATOR_ISA {
namespace {

using ptx::Type;

// clang-format off
struct Eq { template <class T> static bool apply(T a, T b) { return a == b; } };
struct Ne { template <class T> static bool apply(T a, T b) { return a != b; } };
struct Lt { template <class T> static bool apply(T a, T b) { return a < b; } };
struct Le { template <class T> static bool apply(T a, T b) { return a <= b; } };
struct Gt { template <class T> static bool apply(T a, T b) { return a > b; } };
struct Ge { template <class T> static bool apply(T a, T b) { return a >= b; } };
// Floating point: `ne` is false for NaN, the forms ending in u are true.
struct OrderedNe { template <class T> static bool apply(T a, T b) { return (a < b) | (a > b); } };
struct EqU { template <class T> static bool apply(T a, T b) { return !((a < b) | (a > b)); } };
struct LtU { template <class T> static bool apply(T a, T b) { return !(a >= b); } };
struct LeU { template <class T> static bool apply(T a, T b) { return !(a > b); } };
struct GtU { template <class T> static bool apply(T a, T b) { return !(a <= b); } };
struct GeU { template <class T> static bool apply(T a, T b) { return !(a < b); } };
struct Num { template <class T> static bool apply(T a, T b) { return (a == a) & (b == b); } };
struct Nan { template <class T> static bool apply(T a, T b) { return (a != a) | (b != b); } };
// clang-format on

template <class Op, bool flush, class T>
Mask outcome_of(const T* a, const T* b) {
  Row<uint8_t> holds;
  for (int lane = 0; lane < 32; ++lane) {
    if constexpr (flush) {
      holds.lane[lane] = Op::apply(flushed(a[lane]), flushed(b[lane]));
    } else {
      holds.lane[lane] = Op::apply(a[lane], b[lane]);
    }
  }
  return pack_bytes(holds.lane);
}

/// The comparison of one instruction: registers of T ...
template <class T, class Op, bool flush = false>
struct Plain {
  static Mask low(const Warp& warp, const Instruction* i) {
    return outcome_of<Op, flush>(row<T>(warp, i->a), row<T>(warp, i->b));
  }
};

/// The same of halves: what is subnormal among them is a normal float.
template <class Format, class Op, bool flush>
Mask outcome_of_halves(const uint16_t* a, const uint16_t* b) {
  Row<float> x, y;
  Format::widen(x.lane, a, 32);
  Format::widen(y.lane, b, 32);
  if constexpr (flush) {
    for (Row<float>* wide : {&x, &y}) {
      for (float& value : wide->lane) value = std::abs(value) < Format::smallest_normal ? 0.0f : value;
    }
  }
  return outcome_of<Op, false>(x.lane, y.lane);
}

/// ... halves, ...
template <class Format, class Op, bool flush>
struct Halves {
  static Mask low(const Warp& warp, const Instruction* i) {
    return outcome_of_halves<Format, Op, flush>(row<uint16_t>(warp, i->a), row<uint16_t>(warp, i->b));
  }
};

/// ... or pairs of halves.
template <class Format, class Op, bool flush>
struct Pairs {
  static Mask half(const Warp& warp, const Instruction* i, int shift) {
    const uint32_t* const x = row<uint32_t>(warp, i->a);
    const uint32_t* const y = row<uint32_t>(warp, i->b);
    Row<uint16_t> p, q;
    for (int lane = 0; lane < 32; ++lane) {
      p.lane[lane] = static_cast<uint16_t>(x[lane] >> shift);
      q.lane[lane] = static_cast<uint16_t>(y[lane] >> shift);
    }
    return outcome_of_halves<Format, Op, flush>(p.lane, q.lane);
  }
  static Mask low(const Warp& warp, const Instruction* i) { return half(warp, i, 0); }
  static Mask high(const Warp& warp, const Instruction* i) { return half(warp, i, 16); }
};

Mask joined(const Warp& warp, const Instruction* i, Mask outcome) {
  const int64_t how = i->immediate & join_mask;
  if (how == join_none) return outcome;
  Mask other = *row<Mask>(warp, i->c);
  if ((i->immediate & join_negate) != 0) other = ~other;
  return how == join_and ? outcome & other : how == join_or ? outcome | other : outcome ^ other;
}

template <class Source>
const Instruction* setp(Warp& warp, const Instruction* i) {
  const Mask mask = guarded(warp, i);
  const Mask outcome = Source::low(warp, i);
  const uint32_t second = warp.lists[i->extra];
  Mask other = ~outcome;
  if constexpr (requires { Source::high(warp, i); }) other = Source::high(warp, i);
  const Mask p = joined(warp, i, outcome), q = joined(warp, i, other);
  set_predicate(warp, i->d, p, mask);
  set_predicate(warp, second, q, mask);
  return i + 1;
}

/// The immediate's upper half is what true looks like, in either half of a register.
template <class Source>
const Instruction* set_pair(Warp& warp, const Instruction* i) {
  Result<uint32_t> result(warp, i->d, guarded(warp, i));
  uint32_t* const d = result.data();
  const uint32_t truth = static_cast<uint32_t>(static_cast<uint64_t>(i->immediate) >> join_true_at);
  const Mask low = joined(warp, i, Source::low(warp, i)), high = joined(warp, i, Source::high(warp, i));
  for (int lane = 0; lane < 32; ++lane) {
    d[lane] = ((low >> lane & 1) != 0 ? truth & 0xFFFF : 0) | ((high >> lane & 1) != 0 ? truth & 0xFFFF0000u : 0);
  }
  result.finish();
  return i + 1;
}

/// Calls use.template operator()<Op>() for the comparison of floating-point numbers.
template <class Use>
Handler with_float(Compare compare, Use use) {
  switch (compare) {
    case Compare::eq:
      return use.template operator()<Eq>();
    case Compare::ne:
      return use.template operator()<OrderedNe>();
    case Compare::lt:
      return use.template operator()<Lt>();
    case Compare::le:
      return use.template operator()<Le>();
    case Compare::gt:
      return use.template operator()<Gt>();
    case Compare::ge:
      return use.template operator()<Ge>();
    case Compare::equ:
      return use.template operator()<EqU>();
    case Compare::neu:
      return use.template operator()<Ne>();
    case Compare::ltu:
      return use.template operator()<LtU>();
    case Compare::leu:
      return use.template operator()<LeU>();
    case Compare::gtu:
      return use.template operator()<GtU>();
    case Compare::geu:
      return use.template operator()<GeU>();
    case Compare::num:
      return use.template operator()<Num>();
    case Compare::nan:
      return use.template operator()<Nan>();
    default:
      return nullptr;
  }
}

/// The same of halves or pairs of them, in one of the formats.
template <template <class, class, bool> class Source, class Format>
Handler setp_of_halves(Compare compare, bool flush) {
  if (flush) return with_float(compare, []<class Op>() -> Handler { return setp<Source<Format, Op, true>>; });
  return with_float(compare, []<class Op>() -> Handler { return setp<Source<Format, Op, false>>; });
}

template <class Format>
Handler set_pair_of(Compare compare, bool flush) {
  if (flush) return with_float(compare, []<class Op>() -> Handler { return set_pair<Pairs<Format, Op, true>>; });
  return with_float(compare, []<class Op>() -> Handler { return set_pair<Pairs<Format, Op, false>>; });
}

template <class Use>
Handler with_integer(Compare compare, Use use) {
  switch (compare) {
    case Compare::eq:
      return use.template operator()<Eq>();
    case Compare::ne:
      return use.template operator()<Ne>();
    case Compare::lt:
    case Compare::lo:
      return use.template operator()<Lt>();
    case Compare::le:
    case Compare::ls:
      return use.template operator()<Le>();
    case Compare::gt:
    case Compare::hi:
      return use.template operator()<Gt>();
    case Compare::ge:
    case Compare::hs:
      return use.template operator()<Ge>();
    default:
      return nullptr;
  }
}

Handler setp_of(Compare compare, Type type, bool flush) {
  const auto plain_integer = [compare]<class T>(T) {
    return with_integer(compare, []<class Op>() -> Handler { return setp<Plain<T, Op>>; });
  };
  switch (type) {
    case Type::b16:
    case Type::u16:
      return plain_integer(uint16_t{});
    case Type::s16:
      return plain_integer(int16_t{});
    case Type::b32:
    case Type::u32:
      return plain_integer(uint32_t{});
    case Type::s32:
      return plain_integer(int32_t{});
    case Type::b64:
    case Type::u64:
      return plain_integer(uint64_t{});
    case Type::s64:
      return plain_integer(int64_t{});
    case Type::f32:
      if (flush) return with_float(compare, []<class Op>() -> Handler { return setp<Plain<float, Op, true>>; });
      return with_float(compare, []<class Op>() -> Handler { return setp<Plain<float, Op>>; });
    case Type::f64:
      return with_float(compare, []<class Op>() -> Handler { return setp<Plain<double, Op>>; });
    case Type::f16:
      return setp_of_halves<Halves, F16>(compare, flush);
    case Type::bf16:
      return setp_of_halves<Halves, BF16>(compare, flush);
    default:
      return nullptr;
  }
}

template <class Op>
const Instruction* logic(Warp& warp, const Instruction* i) {
  const Mask mask = guarded(warp, i);
  set_predicate(warp, i->d, Op::apply(*row<Mask>(warp, i->a), *row<Mask>(warp, i->b)), mask);
  return i + 1;
}

// clang-format off
struct PredicateAnd { static Mask apply(Mask a, Mask b) { return a & b; } };
struct PredicateOr { static Mask apply(Mask a, Mask b) { return a | b; } };
struct PredicateXor { static Mask apply(Mask a, Mask b) { return a ^ b; } };
struct PredicateNot { static Mask apply(Mask a, Mask) { return ~a; } };
struct PredicateMove { static Mask apply(Mask a, Mask) { return a; } };
// clang-format on

}  // namespace

Handler compare(Compare compare, Type type, bool flush) {
  switch (type) {
    case Type::f16x2:
      return setp_of_halves<Pairs, F16>(compare, flush);
    case Type::bf16x2:
      return setp_of_halves<Pairs, BF16>(compare, flush);
    default:
      return setp_of(compare, type, flush);
  }
}

Handler set_pair(Compare compare, Type type, bool flush) {
  switch (type) {
    case Type::f16x2:
      return set_pair_of<F16>(compare, flush);
    case Type::bf16x2:
      return set_pair_of<BF16>(compare, flush);
    default:
      return nullptr;
  }
}

Handler predicate_logic(IntegerOp op) {
  switch (op) {
    case IntegerOp::bit_and:
      return logic<PredicateAnd>;
    case IntegerOp::bit_or:
      return logic<PredicateOr>;
    case IntegerOp::bit_xor:
      return logic<PredicateXor>;
    case IntegerOp::bit_not:
      return logic<PredicateNot>;
    case IntegerOp::move:
      return logic<PredicateMove>;
    default:
      return nullptr;
  }
}

}  // namespace kiln::emulator::KILN_EMULATOR_ISA
