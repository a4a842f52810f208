#include "kiln/timing/replay.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "events.h"
#include "instruction_cache.h"
#include "instruction_cost.h"
#include "kiln/base/error.h"
#include "kiln/timing/trace.h"
#include "memory_system.h"
#include "register_banks.h"
#include "replay_state.h"

namespace kiln::timing {

std::string_view to_string(Pipe pipe) {
  constexpr std::string_view names[] = {"fma",     "imad",   "alu",    "half",   "fp64", "special",
                                        "uniform", "tensor", "branch", "memory", "none"};
  return names[static_cast<size_t>(pipe)];
}

std::string_view to_string(Stall stall) {
  constexpr std::string_view names[] = {"counted", "global", "shared",   "other result",
                                        "barrier", "fetch",  "mbarrier", "tensor products"};
  return names[static_cast<size_t>(stall)];
}

namespace {

class Sm {
 public:
  Sm(const Sass& sass, const Card& card, const ReplaySetup& setup)
      : card_(card),
        setup_(setup),
        sass_(sass),
        trace_(setup.trace),
        costs_(costs_of(sass, card, unknown_)),
        memory_(card, setup),
        instructions_(card, static_cast<uint32_t>(sass.instructions.size() / 8 + 1)) {}

  ReplayResult run() {
    places_.resize(setup_.resident_blocks);
    for (uint32_t p = 0; p < setup_.resident_blocks; ++p) begin_block(p, 0);
    while (live_blocks_ > 0) cycle();
    memory_.count(result_);
    result_.fetch_busy = instructions_.busy();
    result_.cycles = last_;
    result_.passed = std::max(last_, memory_.passed());
    return result_;
  }

 private:
  void begin_block(uint32_t p, uint64_t now) {
    if (begun_ == setup_.blocks) return;
    Place& place = places_[p];
    place.path = setup_.path(begun_++);
    place.block = begun_;
    place.phases.clear();
    place.live = static_cast<uint32_t>(place.path->warps.size());
    place.arrived.fill(0);
    place.waiting.clear();
    if (warps_.empty()) {
      warps_.resize(size_t{place.live} * setup_.resident_blocks);
      if (trace_ != nullptr) trace_->begin(sass_, place.live);
    }
    if (trace_ != nullptr) trace_->begin_block(p, begun_ - 1, now + 1);
    ++live_blocks_;
    for (uint32_t w = 0; w < place.live; ++w) {
      const uint32_t id = p * place.live + w;
      WarpState& warp = warps_[id];
      warp = WarpState{};
      warp.path = &place.path->warps[w];
      warp.at = warp.path->executed.data();
      warp.end = warp.at + warp.path->executed.size();
      warp.place = p;
      warp.age = ++launched_;
      warp.since = now + 1;
      at(now + 1, id, Events::wake);
    }
  }

  void at(uint64_t cycle, uint32_t warp, uint8_t counter) {
    events_.add(now_, {cycle, warps_[warp].age, static_cast<uint16_t>(warp), counter, -1});
  }

  void cycle() {
    events_.take(now_, [&](const Event& event) { happen(event); });
    bool again = false;
    uint64_t next = ~uint64_t{0};
    for (uint32_t s = 0; s < schedulers; ++s) {
      if (ready_[s] == 0) continue;
      const uint64_t when = issue(s);
      again = again || when <= now_ + 1;
      next = std::min(next, when);
    }
    if (again) {
      ++now_;
      return;
    }
    if (!events_.empty()) next = std::min(next, events_.next(now_));
    if (next == ~uint64_t{0}) {
      if (live_blocks_ == 0) return;
      throw Error(ErrorCode::unsupported, "the warps of a block wait for ever");
    }
    now_ = next;
  }

  void happen(const Event& event) {
    if (event.counter == Events::effect) {
      take_effect(effects_[event.age]);
      return;
    }
    WarpState& warp = warps_[event.warp];
    if (warp.age != event.age) return;
    if (event.counter == Events::wake) {
      settle(event.warp);
      return;
    }
    --warp.pending[event.counter];
    if (warp.blocked) settle(event.warp);
  }

  // The warp may issue, unless it waits for a result or its instruction is not there.
  void settle(uint32_t id) {
    WarpState& warp = warps_[id];
    const Cost& cost = costs_[warp.at->instruction];
    warp.blocked = false;
    for (uint32_t c = 0; c < counters; ++c) {
      const bool waits = (cost.control.wait_mask >> c & 1) != 0 && warp.pending[c] > 0;
      if (!waits && !(cost.counter == c && warp.pending[c] > cost.at_most)) continue;
      account(warp, warp.cause[c]);
      warp.blocked = true;
      return;
    }
    if (warp.fetched != cost.line) {
      const uint64_t there = instructions_.ready(id % schedulers, cost.line, now_);
      warp.fetched = cost.line;
      if (there > now_) {
        account(warp, Stall::fetch);
        at(there, id, Events::wake);
        return;
      }
    }
    account(warp, Stall::counted);
    const uint32_t s = id % schedulers, bit = id / schedulers;
    ready_[s] |= uint64_t{1} << bit;
    ready_in_[s][static_cast<size_t>(cost.pipe)] |= uint64_t{1} << bit;
  }

  // The time since the warp stopped is that of what it stopped for; from now on it is `next`.
  void account(WarpState& warp, Stall next) {
    result_.stalled[static_cast<size_t>(warp.stall)] += now_ - std::min(now_, warp.since);
    if (trace_ != nullptr) trace_->wait(index_of(warp), warp.stall, warp.since, now_);
    warp.since = now_;
    warp.stall = next;
  }

  uint32_t index_of(const WarpState& warp) const { return static_cast<uint32_t>(&warp - warps_.data()); }

  // Issues one instruction of scheduler `s`. Returns the cycle in which it can issue again, if it has a warp for that.
  uint64_t issue(uint32_t s) {
    if (issue_free_[s] > now_) return issue_free_[s];
    uint64_t candidates = 0, soonest = ~uint64_t{0};
    for (size_t pipe = 0; pipe < pipe_count; ++pipe) {
      if (ready_in_[s][pipe] == 0) continue;
      if (pipe_free_[s][pipe] <= now_) {
        candidates |= ready_in_[s][pipe];
      } else {
        soonest = std::min(soonest, pipe_free_[s][pipe]);
      }
    }
    if (candidates == 0) return soonest;
    const uint32_t bit = choose(s, candidates);
    const uint32_t id = bit * schedulers + s;
    const Cost& cost = costs_[warps_[id].at->instruction];
    ready_[s] &= ~(uint64_t{1} << bit);
    ready_in_[s][static_cast<size_t>(cost.pipe)] &= ~(uint64_t{1} << bit);
    last_issued_[s] = cost.control.yields ? ~0U : bit;
    if (trace_ != nullptr) record_issue(id);
    execute(s, id, cost);
    return ready_[s] != 0 ? now_ + 1 : ~uint64_t{0};
  }

  // Once the trace is full, the replay goes on without it.
  void record_issue(uint32_t id) {
    const WarpState& warp = warps_[id];
    if (trace_->issue(id, warp.at->instruction, warp.since, now_)) return;
    trace_ = nullptr;
    memory_.stop_trace();
  }

  // The warp of the last instruction goes on as long as it can, then the youngest.
  uint32_t choose(uint32_t s, uint64_t candidates) const {
    if (last_issued_[s] < 64 && (candidates >> last_issued_[s] & 1) != 0) return last_issued_[s];
    uint32_t best = 64, age = 0;
    for (; candidates != 0; candidates &= candidates - 1) {
      const auto bit = static_cast<uint32_t>(std::countr_zero(candidates));
      if (warps_[bit * schedulers + s].age > age) {
        best = bit;
        age = warps_[bit * schedulers + s].age;
      }
    }
    return best;
  }

  void execute(uint32_t s, uint32_t id, const Cost& cost) {
    WarpState& warp = warps_[id];
    ++result_.issued;
    const auto pipe = static_cast<size_t>(cost.pipe);
    result_.pipe_busy[pipe] += cost.cycles;
    if (cost.pipe != Pipe::memory && cost.pipe != Pipe::none) pipe_free_[s][pipe] = now_ + cost.cycles;
    if (cost.fraction != 0) add_fraction(s, cost);
    const uint64_t held_by_banks = banks_[s].read(cost.reads, now_);
    if (held_by_banks > 0) issue_free_[s] = now_ + 1 + held_by_banks;
    uint64_t result = now_ + 1, operands = now_ + 1, held = 0;
    bool parked = false;
    Stall cause = Stall::other_result;
    if (cost.wait == Wait::transaction) {
      parked = transact(s, id, cost, result, operands);
      cause = Stall::phase;
    } else if (cost.pipe == Pipe::memory) {
      access(s, id, cost, result, operands, cause);
    } else if (cost.wait == Wait::products) {
      multiply(s, warp, cost);
    } else if (cost.wait == Wait::product_group) {
      if (warp.group > cost.groups_left) held = warp.groups[(warp.group - 1 - cost.groups_left) % warp.groups.size()];
    } else if (cost.wait == Wait::bulk_stores) {
      operands = std::max(now_ + 1, warp.stores);
      cause = Stall::global;
    } else if (cost.wait == Wait::constant) {
      result = operands = now_ + card_.constant_latency;
    } else if (cost.wait == Wait::copies) {
      result = std::max(now_ + 1, warp.copies);
      cause = Stall::global;
    } else if (cost.wait == Wait::unit) {
      result = now_ + card_.special_latency;
      operands = now_ + std::min(card_.special_latency, 10U);
    }
    if (!parked) arm(id, cost.control.write_barrier, result, cause);
    arm(id, cost.control.read_barrier, operands, cause);
    go_on(id, cost, held);
  }

  // Parts of a cycle that tensor instructions take beyond whole ones.
  void add_fraction(uint32_t s, const Cost& cost) {
    constexpr uint32_t whole = 256;
    tensor_rest_[s] += cost.fraction;
    if (tensor_rest_[s] < whole) return;
    tensor_rest_[s] -= whole;
    ++pipe_free_[s][static_cast<size_t>(cost.pipe)];
    ++result_.pipe_busy[static_cast<size_t>(cost.pipe)];
  }

  void arm(uint32_t id, uint8_t counter, uint64_t released, Stall cause) {
    if (counter >= counters) return;
    WarpState& warp = warps_[id];
    ++warp.pending[counter];
    warp.cause[counter] = cause;
    at(released, id, counter);
  }

  // Through the scheduler's queue to the unit that all share, which is busy then. Returns the cycle in which it begins.
  uint64_t dispatch(uint32_t s, uint64_t busy) {
    address_free_[s] = std::max(now_ + card_.dispatch_latency, address_free_[s] + card_.address_cycles);
    const uint64_t leaves = std::max(address_free_[s], lsu_free_);
    lsu_free_ = leaves + busy;
    if (trace_ != nullptr) trace_->use_unit(leaves, lsu_free_);
    result_.lsu_busy += busy;
    auto& queue = queue_[s];
    queue[queue_at_[s]] = leaves;
    queue_at_[s] = (queue_at_[s] + 1) % card_.memory_queue;
    pipe_free_[s][static_cast<size_t>(Pipe::memory)] = std::max(now_ + 1, queue[queue_at_[s]]);
    return leaves;
  }

  // The way through that unit and the caches.
  void access(uint32_t s, uint32_t id, const Cost& cost, uint64_t& result, uint64_t& operands, Stall& cause) {
    WarpState& warp = warps_[id];
    const Executed& executed = *warp.at;
    const Access* access = executed.access == no_access ? nullptr : &warp.path->accesses[executed.access];
    const uint64_t wavefronts = access == nullptr ? 1 : access->wavefronts;
    constexpr uint32_t looked_up = 4;  // lines of L1 in a cycle, by gpu-benches on A40, A100 and H200
    const uint64_t tags = access == nullptr ? 0 : (access->lines + looked_up - 1) / looked_up;
    const uint64_t busy = std::max<uint64_t>({card_.lsu_cycles, wavefronts * card_.pass_cycles, tags});
    const uint64_t leaves = dispatch(s, busy);
    const uint64_t late = busy - card_.lsu_cycles;
    operands = leaves - 2;
    result = leaves + late + card_.shared_latency - card_.dispatch_latency + cost.extra / 3;
    cause = Stall::shared;
    const bool is_store = cost.wait == Wait::store || cost.wait == Wait::local_store || cost.wait == Wait::shared_store;
    if (is_store) operands = leaves + late + 1 + cost.extra;
    if (access == nullptr || access->space == Access::Space::shared) return;
    cause = Stall::global;
    const Line* lines = warp.path->lines.data() + access->first_line;
    const bool local = access->space == Access::Space::local;
    const uint64_t offset = local ? uint64_t{1} << 62 | uint64_t{id} << 40 : 0;
    if (is_store) {
      memory_.store(leaves + late, *access, lines, offset, local);
      return;
    }
    operands = leaves;
    const uint64_t there =
        memory_.load(leaves + late, places_[warp.place].block, *access, lines, offset, cost.bypasses_l1);
    result = there + card_.l1_latency - card_.dispatch_latency + cost.extra;
    if (cost.wait == Wait::copy) warp.copies = std::max(warp.copies, result);
  }

  // Products of a warpgroup wait for the tensor unit in the order of their issue. Its four warps read shared memory
  // together, and no other's do meanwhile.
  void multiply(uint32_t s, WarpState& warp, const Cost& cost) {
    uint64_t& free = pipe_free_[s][static_cast<size_t>(Pipe::tensor)];
    free = std::max(now_ + 1, free) + std::max<uint64_t>(cost.cycles, cost.operand_bytes / card_.operand_bytes);
    result_.pipe_busy[static_cast<size_t>(Pipe::tensor)] += cost.cycles;
    if (cost.ends_group) warp.groups[warp.group++ % warp.groups.size()] = free;
  }

  // True if the instruction waits for a phase that is not complete: its counter is released by what completes it.
  bool transact(uint32_t s, uint32_t id, const Cost& cost, uint64_t& result, uint64_t& operands) {
    WarpState& warp = warps_[id];
    const Executed& executed = *warp.at;
    const Transaction none;
    const Transaction& asked = executed.access == no_access ? none : warp.path->transactions[executed.access];
    const bool arrives = asked.kind == Transaction::Kind::arrive;
    const uint32_t one_by_one = arrives ? std::min(asked.arrivals, 32U) : 1;
    const uint64_t busy = std::max(card_.lsu_cycles, one_by_one);
    const uint64_t leaves = dispatch(s, busy);
    operands = leaves;
    result = leaves + card_.phase_latency;
    if (executed.access == no_access) return false;
    PhaseState& barrier = phase_of(warp.place, asked.barrier);
    switch (asked.kind) {
      case Transaction::Kind::init:
        barrier.count = barrier.pending = asked.arrivals;
        break;
      case Transaction::Kind::arrive:
        later(leaves + busy + (asked.remote ? card_.cluster_latency : 0), warp.place,
              {0, 0, asked.barrier, asked.arrivals, static_cast<int64_t>(asked.bytes)});
        break;
      case Transaction::Kind::load:
        later(memory_.load_in_bulk(leaves, asked.bytes), warp.place,
              {0, 0, asked.barrier, 0, -static_cast<int64_t>(asked.bytes * asked.receivers)});
        break;
      case Transaction::Kind::store:
        warp.stores = memory_.store_in_bulk(leaves, asked.bytes);
        break;
      case Transaction::Kind::wait:
        if (barrier.phase >= asked.phase || cost.control.write_barrier >= counters) return false;
        barrier.waiting.push_back({id, warp.age, cost.control.write_barrier, asked.phase});
        ++warp.pending[cost.control.write_barrier];
        warp.cause[cost.control.write_barrier] = Stall::phase;
        return true;
    }
    return false;
  }

  PhaseState& phase_of(uint32_t place, uint16_t barrier) {
    auto& phases = places_[place].phases;
    if (phases.size() <= barrier) phases.resize(barrier + 1U);
    return phases[barrier];
  }

  void later(uint64_t cycle, uint32_t place, Effect effect) {
    effect.place = place;
    effect.block = places_[place].block;
    effects_.push_back(effect);
    events_.add(now_, {cycle, static_cast<uint32_t>(effects_.size() - 1), 0, Events::effect, -1});
  }

  void take_effect(const Effect& effect) {
    if (places_[effect.place].block != effect.block) return;
    PhaseState& barrier = phase_of(effect.place, effect.barrier);
    barrier.pending -= effect.arrivals;
    barrier.bytes += effect.bytes;
    if (barrier.pending > 0 || barrier.bytes != 0) return;
    ++barrier.phase;
    barrier.pending += barrier.count;
    std::erase_if(barrier.waiting, [&](const PhaseWaiter& waiter) {
      if (waiter.phase > barrier.phase) return false;
      if (warps_[waiter.warp].age == waiter.age) at(now_ + card_.phase_latency, waiter.warp, waiter.counter);
      return true;
    });
  }

  void go_on(uint32_t id, const Cost& cost, uint64_t held) {
    WarpState& warp = warps_[id];
    const Executed& done = *warp.at++;
    warp.since = now_ + 1;
    warp.stall = Stall::counted;
    if (warp.at == warp.end) {
      finish(id);
      return;
    }
    if (cost.is_barrier && arrive(id, warp.path->barriers[done.access])) return;
    const uint64_t counted = now_ + std::max<uint64_t>(1, cost.control.stall);
    if (held > counted) warp.stall = Stall::products;
    at(std::max(counted, held), id, Events::wake);
  }

  // True if the warp waits.
  bool arrive(uint32_t id, const Barrier& barrier) {
    Place& place = places_[warps_[id].place];
    const uint32_t b = std::min(barrier.id, cluster_barrier);
    ++place.arrived[b];
    if (barrier.waits) {
      place.waiting.emplace_back(id, b);
      warps_[id].stall = Stall::barrier;
    }
    open(place, b, barrier.warps);
    return barrier.waits;
  }

  void open(Place& place, uint32_t b, uint32_t needed) {
    if (place.arrived[b] == 0 || place.arrived[b] < (needed == 0 ? place.live : needed)) return;
    place.arrived[b] = 0;
    std::erase_if(place.waiting, [&](const auto& entry) {
      if (entry.second != b) return false;
      at(now_ + card_.barrier_latency + (b == cluster_barrier ? card_.cluster_latency : 0), entry.first, Events::wake);
      return true;
    });
  }

  void finish(uint32_t id) {
    Place& place = places_[warps_[id].place];
    last_ = now_ + 1;
    if (trace_ != nullptr) trace_->end_warp(id, last_);
    if (--place.live > 0) {
      open(place, 0, 0);
      open(place, cluster_barrier, 0);
      return;
    }
    --live_blocks_;
    begin_block(warps_[id].place, now_ + card_.block_cycles);
  }

  const Card& card_;
  const ReplaySetup& setup_;
  const Sass& sass_;
  ReplayTrace* trace_;
  std::vector<std::string> unknown_;
  std::vector<Cost> costs_;
  MemorySystem memory_;
  InstructionCaches instructions_;
  Events events_;
  std::vector<WarpState> warps_;
  std::vector<Place> places_;
  std::vector<Effect> effects_;
  uint64_t now_ = 0, last_ = 0;
  uint32_t begun_ = 0, live_blocks_ = 0, launched_ = 0;
  std::array<uint64_t, schedulers> ready_{};                             // warps that may issue
  std::array<std::array<uint64_t, pipe_count>, schedulers> ready_in_{};  // the same by the pipe they need
  std::array<std::array<uint64_t, pipe_count>, schedulers> pipe_free_{};
  std::array<uint64_t, schedulers> issue_free_{}, address_free_{};
  std::array<RegisterBanks, schedulers> banks_;
  std::array<uint32_t, schedulers> tensor_rest_{};  // 1/256 of a cycle that the pipe owes
  std::array<uint32_t, schedulers> last_issued_{~0U, ~0U, ~0U, ~0U};
  std::array<std::array<uint64_t, 16>, schedulers> queue_{};  // when instructions leave the scheduler's queue
  std::array<uint32_t, schedulers> queue_at_{};
  uint64_t lsu_free_ = 0;
  ReplayResult result_;
};

}  // namespace

ReplayResult replay(const Sass& sass, const Card& card, const ReplaySetup& setup) {
  return Sm(sass, card, setup).run();
}

}  // namespace kiln::timing
