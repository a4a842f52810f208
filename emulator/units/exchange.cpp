// Instructions in which the lanes of a warp see each other: shfl, vote, match, redux, elect, activemask.
#include <bit>

#include "checks/fault.h"
#include "floating_ops.h"
#include "lanes.h"
#include "scheduler/divergence.h"
#include "units.h"

namespace kiln::emulator::KILN_EMULATOR_ISA {
namespace {

using ptx::Type;

/// The lanes among `lanes` whose member mask is the one of the first of them.
Mask same_mask(const uint32_t* members, Mask lanes) {
  const uint32_t mask = members[std::countr_zero(lanes)];
  Mask same = 0;
  for (int lane = 0; lane < 32; ++lane) same |= static_cast<Mask>(members[lane] == mask) << lane;
  return same & lanes;
}

/// Runs `body` for the lanes of each member mask of which all members are here; the others wait for theirs. A mask that
/// leaves out a lane which executes is undefined in PTX.
template <class Body>
const Instruction* together(Warp& warp, const Instruction* i, uint32_t member_register, Body body) {
  const Mask lanes = guarded(warp, i);
  if (lanes == 0) return i + 1;
  const uint32_t* const members = row<uint32_t>(warp, member_register);
  Mask incomplete = 0;
  for (Mask open = lanes, group = 0; open != 0; open &= ~group) {
    group = same_mask(members, open);
    const Mask mask = members[std::countr_zero(group)];
    if ((mask & warp.live & ~lanes) != 0) [[unlikely]] {
      incomplete |= group;
      continue;
    }
    if ((group & ~mask) != 0 && warp.block->checking) [[unlikely]] {
      return fault_here(warp, i, FaultKind::illegal_instruction, group & ~mask,
                        "the thread executes this without being in the member mask");
    }
    body(group);
  }
  if (incomplete == 0) return i + 1;
  return wait_for_members(warp, i, lanes, incomplete, members);
}

template <Exchange mode>
int source_lane(int lane, uint32_t b, uint32_t c, bool& in_range) {
  const int segments = static_cast<int>(c >> 8 & 31), clamp = static_cast<int>(c & 31),
            distance = static_cast<int>(b & 31);
  const int limit = (lane & segments) | (clamp & ~segments);
  int from = lane;
  if constexpr (mode == Exchange::shfl_up) from = lane - distance;
  if constexpr (mode == Exchange::shfl_down) from = lane + distance;
  if constexpr (mode == Exchange::shfl_bfly) from = lane ^ distance;
  if constexpr (mode == Exchange::shfl_idx) from = (lane & segments) | (distance & ~segments);
  in_range = mode == Exchange::shfl_up ? from >= limit : from <= limit;
  return in_range ? from : lane;
}

/// The value that a shuffle gets from a lane that does not take part: a NaN, and no small integer.
constexpr uint32_t unpredictable = 0xFFFFFFFFu;

template <Exchange mode>
const Instruction* shuffle(Warp& warp, const Instruction* i) {
  return together(warp, i, warp.lists[i->extra], [&](Mask lanes) {
    Row<uint32_t> a;
    std::memcpy(a.lane, row<uint32_t>(warp, i->a), sizeof(a.lane));
    const uint32_t* const b = row<uint32_t>(warp, i->b);
    const uint32_t* const c = row<uint32_t>(warp, i->c);
    if (warp.block->checking) {
      for (int lane = 0; lane < 32; ++lane) a.lane[lane] = (lanes >> lane & 1) != 0 ? a.lane[lane] : unpredictable;
    }
    Row<uint32_t> found;
    Mask in_range = 0;
    for (int lane = 0; lane < 32; ++lane) {
      bool ok = false;
      found.lane[lane] = a.lane[source_lane<mode>(lane, b[lane], c[lane], ok) & 31];
      in_range |= static_cast<Mask>(ok) << lane;
    }
    blend(row<uint32_t>(warp, i->d), found.lane, lanes);
    if (const uint32_t predicate = warp.lists[i->extra + 1]; predicate != 0) {
      set_predicate(warp, predicate, in_range, lanes);
    }
  });
}

template <Exchange mode>
const Instruction* vote(Warp& warp, const Instruction* i) {
  return together(warp, i, i->b, [&](Mask lanes) {
    const Mask flip = i->immediate != 0 ? full_mask : 0;
    const Mask votes = (*row<Mask>(warp, i->a) ^ flip) & lanes;
    if constexpr (mode == Exchange::vote_ballot) {
      Row<uint32_t> all;
      for (uint32_t& lane : all.lane) lane = votes;
      blend(row<uint32_t>(warp, i->d), all.lane, lanes);
    } else {
      const bool every = votes == lanes, some = votes != 0;
      const bool holds = mode == Exchange::vote_all ? every : mode == Exchange::vote_any ? some : every || !some;
      set_predicate(warp, i->d, holds ? full_mask : 0, lanes);
    }
  });
}

const Instruction* active_mask(Warp& warp, const Instruction* i) {
  const Mask lanes = guarded(warp, i);
  Row<uint32_t> all;
  for (uint32_t& lane : all.lane) lane = lanes;
  blend(row<uint32_t>(warp, i->d), all.lane, lanes);
  return i + 1;
}

/// The lanes among `lanes` whose value is the one of `lane`.
template <class T>
Mask equal_to(const T* values, int lane, Mask lanes) {
  Mask same = 0;
  for (int other = 0; other < 32; ++other) same |= static_cast<Mask>(values[other] == values[lane]) << other;
  return same & lanes;
}

template <class T>
const Instruction* match_any(Warp& warp, const Instruction* i) {
  return together(warp, i, i->b, [&](Mask lanes) {
    const T* const a = row<T>(warp, i->a);
    Row<uint32_t> found;
    for (int lane = 0; lane < 32; ++lane) found.lane[lane] = equal_to(a, lane, lanes);
    blend(row<uint32_t>(warp, i->d), found.lane, lanes);
  });
}

template <class T>
const Instruction* match_all(Warp& warp, const Instruction* i) {
  return together(warp, i, i->b, [&](Mask lanes) {
    const T* const a = row<T>(warp, i->a);
    const bool same = equal_to(a, std::countr_zero(lanes), lanes) == lanes;
    Row<uint32_t> found;
    for (uint32_t& lane : found.lane) lane = same ? lanes : 0;
    blend(row<uint32_t>(warp, i->d), found.lane, lanes);
    if (i->c != 0) set_predicate(warp, i->c, same ? full_mask : 0, lanes);
  });
}

template <Exchange mode, class T>
T joined(T x, T y) {
  switch (mode) {
    case Exchange::redux_add:
      return static_cast<T>(static_cast<uint32_t>(x) + static_cast<uint32_t>(y));
    case Exchange::redux_min:
      return x < y ? x : y;
    case Exchange::redux_max:
      return x > y ? x : y;
    case Exchange::redux_and:
      return x & y;
    case Exchange::redux_or:
      return x | y;
    default:
      return x ^ y;
  }
}

template <Exchange mode>
struct Joined {
  template <class T>
  static T apply(T x, T y) {
    return joined<mode>(x, y);
  }
};

/// d = the values `a` of the lanes, joined.
template <class Join, class T>
void join_lanes(Warp& warp, const Instruction* i, Mask lanes, const T* a) {
  T sum = a[std::countr_zero(lanes)];
  for (Mask rest = lanes & (lanes - 1); rest != 0; rest &= rest - 1) {
    sum = Join::apply(sum, a[std::countr_zero(rest)]);
  }
  Row<T> result;
  for (T& lane : result.lane) lane = sum;
  blend(row<T>(warp, i->d), result.lane, lanes);
}

template <Exchange mode, class T>
const Instruction* reduce(Warp& warp, const Instruction* i) {
  return together(warp, i, i->b, [&](Mask lanes) { join_lanes<Joined<mode>>(warp, i, lanes, row<T>(warp, i->a)); });
}

/// The extreme of floats. A NaN comes out as the canonical one, even if its lane is alone.
template <bool maximum>
const Instruction* reduce_floats(Warp& warp, const Instruction* i) {
  return together(warp, i, i->b, [&](Mask lanes) {
    Row<float> a;
    for (int lane = 0; lane < 32; ++lane) {
      const float value = row<float>(warp, i->a)[lane];
      const float considered = (i->immediate & redux_abs) != 0 ? magnitude(value) : value;
      a.lane[lane] = is_nan(value) ? quiet_nan<float>() : considered;
    }
    if ((i->immediate & redux_nan) != 0) {
      join_lanes<FloatExtreme<Extreme{.maximum = maximum, .nan = true}>>(warp, i, lanes, a.lane);
    } else {
      join_lanes<FloatExtreme<Extreme{.maximum = maximum}>>(warp, i, lanes, a.lane);
    }
  });
}

const Instruction* elect(Warp& warp, const Instruction* i) {
  return together(warp, i, i->b, [&](Mask lanes) {
    const auto leader = static_cast<uint32_t>(std::countr_zero(lanes));
    Row<uint32_t> all;
    for (uint32_t& lane : all.lane) lane = leader;
    if (i->d != 0) blend(row<uint32_t>(warp, i->d), all.lane, lanes);
    if (i->c != 0) set_predicate(warp, i->c, Mask{1} << leader, lanes);
  });
}

template <class T>
Handler reduction(Exchange op) {
  switch (op) {
    case Exchange::redux_add:
      return reduce<Exchange::redux_add, T>;
    case Exchange::redux_min:
      return reduce<Exchange::redux_min, T>;
    case Exchange::redux_max:
      return reduce<Exchange::redux_max, T>;
    case Exchange::redux_and:
      return reduce<Exchange::redux_and, T>;
    case Exchange::redux_or:
      return reduce<Exchange::redux_or, T>;
    case Exchange::redux_xor:
      return reduce<Exchange::redux_xor, T>;
    default:
      return nullptr;
  }
}

}  // namespace

Handler exchange(Exchange op, Type type) {
  const bool wide = ptx::bytes(type) == 8;
  switch (op) {
    case Exchange::shfl_up:
      return shuffle<Exchange::shfl_up>;
    case Exchange::shfl_down:
      return shuffle<Exchange::shfl_down>;
    case Exchange::shfl_bfly:
      return shuffle<Exchange::shfl_bfly>;
    case Exchange::shfl_idx:
      return shuffle<Exchange::shfl_idx>;
    case Exchange::vote_all:
      return vote<Exchange::vote_all>;
    case Exchange::vote_any:
      return vote<Exchange::vote_any>;
    case Exchange::vote_uni:
      return vote<Exchange::vote_uni>;
    case Exchange::vote_ballot:
      return vote<Exchange::vote_ballot>;
    case Exchange::activemask:
      return active_mask;
    case Exchange::match_any:
      return wide ? match_any<uint64_t> : match_any<uint32_t>;
    case Exchange::match_all:
      return wide ? match_all<uint64_t> : match_all<uint32_t>;
    case Exchange::elect:
      return elect;
    case Exchange::redux_min:
      if (type == Type::f32) return reduce_floats<false>;
      break;
    case Exchange::redux_max:
      if (type == Type::f32) return reduce_floats<true>;
      break;
    default:
      break;
  }
  return type == Type::s32 ? reduction<int32_t>(op) : reduction<uint32_t>(op);
}

}  // namespace kiln::emulator::KILN_EMULATOR_ISA
