// cvt between integers, and between integers and floating-point numbers.
#include <limits>
#include <type_traits>

#include "convert_float.h"
#include "directed.h"
#include "lanes.h"
#include "numerics.h"
#include "units.h"

namespace kiln::emulator::KILN_EMULATOR_ISA {
namespace {

using ptx::Type;

/// 8-bit integers stand in 16-bit registers, extended by their own sign.
template <class T>
using Stored = std::conditional_t<sizeof(T) == 1, std::conditional_t<std::is_signed_v<T>, int16_t, uint16_t>, T>;

template <class To, class From, bool saturate>
struct IntegerCast {
  static Stored<To> apply(Stored<From> stored) {
    const From x = static_cast<From>(stored);
    if constexpr (!saturate) return static_cast<To>(x);
    constexpr To low = std::numeric_limits<To>::min(), high = std::numeric_limits<To>::max();
    if constexpr (std::is_signed_v<From> && !std::is_signed_v<To>) {
      if constexpr (sizeof(From) <= sizeof(To)) return x < 0 ? To{0} : static_cast<To>(x);
      return x < 0 ? To{0} : x > static_cast<From>(high) ? high : static_cast<To>(x);
    } else if constexpr (!std::is_signed_v<From> && std::is_signed_v<To>) {
      if constexpr (sizeof(From) < sizeof(To)) return static_cast<To>(x);
      return x > static_cast<From>(high) ? high : static_cast<To>(x);
    } else if constexpr (sizeof(From) <= sizeof(To)) {
      return static_cast<To>(x);
    } else {
      return x > static_cast<From>(high) ? high : x < static_cast<From>(low) ? low : static_cast<To>(x);
    }
  }
};

template <class To, class From>
struct FloatFromInteger {
  static To apply(Stored<From> x) { return static_cast<To>(static_cast<From>(x)); }
};

/// An integer as the double that rounds like it to 16-bit formats.
template <class From>
double odd_double(Stored<From> stored) {
  const From x = static_cast<From>(stored);
  if constexpr (sizeof(From) < 8) {
    return static_cast<double>(x);
  } else {
    constexpr From exact = From{1} << 53;
    bool wide = x > exact;
    if constexpr (std::is_signed_v<From>) wide = wide || x < -exact;
    const auto low = static_cast<uint64_t>(x) & 0xFFF;
    const auto sticky = (static_cast<uint64_t>(x) & ~uint64_t{0xFFF}) | (low != 0 ? 0x800 : 0);
    return static_cast<double>(wide ? static_cast<From>(sticky) : x);
  }
}

template <class Format, class From>
const Instruction* half_from_integer(Warp& warp, const Instruction* i) {
  Result<uint16_t> result(warp, i->d, guarded(warp, i));
  const auto* const a = row<Stored<From>>(warp, i->a);
  uint16_t* const d = result.data();
  const auto rounding = static_cast<Rounding>(i->immediate & 7);
  for (int lane = 0; lane < 32; ++lane) d[lane] = narrowed<Format>(odd_double<From>(a[lane]), rounding);
  result.finish();
  return i + 1;
}

/// To the nearest integral value in the given direction.
template <Rounding rounding>
double integral(double x) {
  switch (rounding) {
    case Rounding::zero:
      return __builtin_trunc(x);
    case Rounding::down:
      return __builtin_floor(x);
    case Rounding::up:
      return __builtin_ceil(x);
    default:
      return __builtin_rint(x);
  }
}

template <class To, class From, Rounding rounding>
struct IntegerFromFloat {
  static Stored<To> apply(From x) {
    constexpr To low = std::numeric_limits<To>::min(), high = std::numeric_limits<To>::max();
    // Exclusive, so that it is exact for 64 bits, too.
    constexpr double end = 2.0 * static_cast<double>(uint64_t{1} << (std::numeric_limits<To>::digits - 1));
    constexpr bool nan_is_zero = sizeof(From) == 4 && sizeof(To) < 8;
    constexpr auto nan = nan_is_zero ? To{0} : static_cast<To>(std::make_unsigned_t<To>{1} << (8 * sizeof(To) - 1));
    const double r = integral<rounding>(static_cast<double>(x));
    const bool inside = r >= static_cast<double>(low) && r < end;
    const double safe = inside ? r : 0.0;
    To value;
    if constexpr (sizeof(To) < 8) {
      value = static_cast<To>(static_cast<int64_t>(safe));
    } else {
      value = static_cast<To>(safe);
    }
    value = r >= end ? high : r < static_cast<double>(low) ? low : value;
    return is_nan(x) ? nan : value;
  }
};

template <class To, class Format, Rounding rounding>
const Instruction* integer_from_half(Warp& warp, const Instruction* i) {
  Result<Stored<To>> result(warp, i->d, guarded(warp, i));
  Row<float> a;
  Format::widen(a.lane, row<uint16_t>(warp, i->a), 32);
  for (int lane = 0; lane < 32; ++lane) {
    result.data()[lane] = IntegerFromFloat<To, float, rounding>::apply(a.lane[lane]);
  }
  result.finish();
  return i + 1;
}

/// Calls use(tag) with a value of the C++ type of an integer type.
template <class Use>
Handler with_integer(Type type, Use use) {
  switch (type) {
    case Type::u8:
      return use(uint8_t{});
    case Type::s8:
      return use(int8_t{});
    case Type::u16:
      return use(uint16_t{});
    case Type::s16:
      return use(int16_t{});
    case Type::u32:
      return use(uint32_t{});
    case Type::s32:
      return use(int32_t{});
    case Type::u64:
      return use(uint64_t{});
    case Type::s64:
      return use(int64_t{});
    default:
      return nullptr;
  }
}

Handler between_integers(const Conversion& c) {
  return with_integer(c.from, [&]<class From>(From) {
    return with_integer(c.to, [&]<class To>(To) -> Handler {
      if (c.saturate) return map1<IntegerCast<To, From, true>, Stored<To>, Stored<From>>;
      return map1<IntegerCast<To, From, false>, Stored<To>, Stored<From>>;
    });
  });
}

template <class To, class From>
Handler float_from(const Conversion& c) {
  constexpr Handler nearest = map1<FloatFromInteger<To, From>, To, Stored<From>>;
  return c.rounding == Rounding::nearest ? nearest : directed<map1<FloatFromInteger<To, From>, To, Stored<From>>>;
}

Handler from_integer(const Conversion& c) {
  return with_integer(c.from, [&]<class From>(From) -> Handler {
    switch (c.to) {
      case Type::f32:
        return float_from<float, From>(c);
      case Type::f64:
        return float_from<double, From>(c);
      case Type::f16:
        return half_from_integer<F16, From>;
      case Type::bf16:
        return half_from_integer<BF16, From>;
      default:
        return nullptr;
    }
  });
}

template <class To, Rounding rounding>
Handler integer_from(Type from) {
  switch (from) {
    case Type::f32:
      return map1<IntegerFromFloat<To, float, rounding>, Stored<To>, float>;
    case Type::f64:
      return map1<IntegerFromFloat<To, double, rounding>, Stored<To>, double>;
    case Type::f16:
      return integer_from_half<To, F16, rounding>;
    case Type::bf16:
      return integer_from_half<To, BF16, rounding>;
    default:
      return nullptr;
  }
}

/// .ftz matters where it changes a subnormal into zero: rounding up or down.
template <class To, Rounding rounding>
const Instruction* flushed_integer(Warp& warp, const Instruction* i) {
  struct Op {
    static Stored<To> apply(float x) { return IntegerFromFloat<To, float, rounding>::apply(flushed(x)); }
  };
  return map1<Op, Stored<To>, float>(warp, i);
}

Handler to_integer(const Conversion& c) {
  return with_integer(c.to, [&]<class To>(To) -> Handler {
    const bool flush = c.flush && c.from == Type::f32;
    switch (c.rounding) {
      case Rounding::nearest:
        return integer_from<To, Rounding::nearest>(c.from);
      case Rounding::zero:
        return integer_from<To, Rounding::zero>(c.from);
      case Rounding::down:
        return flush ? flushed_integer<To, Rounding::down> : integer_from<To, Rounding::down>(c.from);
      case Rounding::up:
        return flush ? flushed_integer<To, Rounding::up> : integer_from<To, Rounding::up>(c.from);
      default:
        return nullptr;
    }
  });
}

}  // namespace

Handler convert(const Conversion& c) {
  const bool from_float = ptx::is_floating(c.from), to_float = ptx::is_floating(c.to);
  if (!from_float && !to_float) return between_integers(c);
  if (!from_float) return c.saturate ? nullptr : from_integer(c);
  if (!to_float) return to_integer(c);
  return convert_float(c);
}

}  // namespace kiln::emulator::KILN_EMULATOR_ISA
