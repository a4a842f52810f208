#include "kiln/timing/trace.h"

#include <fmt/format.h>

#include <algorithm>

namespace kiln::timing {
namespace {

// Threads of the trace, in the order that the viewer shows them in.
constexpr uint32_t first_block = 1, first_scheduler = 101, unit_track = 111, l2_track = 112, dram_track = 113,
                   first_warp = 201;
constexpr uint64_t open = ~uint64_t{0};

void add_thread(std::string& text, uint32_t process, uint32_t thread, std::string_view name) {
  text += fmt::format(
      ",\n{{\"ph\":\"M\",\"pid\":{0},\"tid\":{1},\"name\":\"thread_name\",\"args\":{{\"name\":\"{2}\"}}}},\n"
      "{{\"ph\":\"M\",\"pid\":{0},\"tid\":{1},\"name\":\"thread_sort_index\",\"args\":{{\"sort_index\":{1}}}}}",
      process, thread, name);
}

// `times`: "ts" and "dur" as they are written; `arguments`: the members of an object.
void add_slice(std::string& text, uint32_t process, uint32_t thread, uint64_t begin, uint64_t end,
               std::string_view name, std::string_view arguments) {
  text += fmt::format(",\n{{\"ph\":\"X\",\"pid\":{},\"tid\":{},\"ts\":{},\"dur\":{},\"name\":\"{}\",\"args\":{{{}}}}}",
                      process, thread, begin, end - begin, name, arguments);
}

std::string escaped(std::string_view text) {
  std::string result;
  for (const char c : text) {
    if (c == '"' || c == '\\') result += '\\';
    result += c;
  }
  return result;
}

std::string_view name_of(Stall cause, bool ready) {
  if (ready) return "waits: pipe or scheduler";
  switch (cause) {
    case Stall::counted:
      return "waits: stall count";
    case Stall::global:
      return "waits: global memory";
    case Stall::shared:
      return "waits: shared memory";
    case Stall::other_result:
      return "waits: other result";
    case Stall::barrier:
      return "waits: barrier";
    case Stall::fetch:
      return "waits: instruction fetch";
    case Stall::phase:
      return "waits: mbarrier";
    case Stall::products:
      return "waits: tensor products";
  }
  return "";
}

}  // namespace

void ReplayTrace::begin(const Sass& sass, uint32_t warps_of_block) {
  *this = ReplayTrace(most_);
  warps_of_block_ = warps_of_block;
  for (const Instruction& instruction : sass.instructions) {
    std::string name = instruction.opcode;
    for (const std::string& modifier : instruction.modifiers) name += "." + modifier;
    names_.push_back(escaped(name));
    addresses_.push_back(fmt::format("0x{:04x}", instruction.address));
  }
}

void ReplayTrace::begin_block(uint32_t place, uint32_t block, uint64_t cycle) {
  for (uint32_t w = 0; w < warps_of_block_; ++w) {
    const size_t id = size_t{place} * warps_of_block_ + w;
    if (life_of_.size() <= id) life_of_.resize(id + 1);
    life_of_[id] = lives_.size();
    lives_.push_back({cycle, open, place, block, w});
  }
}

void ReplayTrace::end_warp(uint32_t warp, uint64_t cycle) {
  lives_[life_of_[warp]].end = cycle;
}

bool ReplayTrace::issue(uint32_t warp, uint32_t instruction, uint64_t ready, uint64_t cycle) {
  last_ = cycle;
  is_cut_ = issues_.size() >= most_;
  if (is_cut_) return false;
  add_wait(warp, Stall::counted, true, ready, cycle);
  issues_.push_back({cycle, warp, instruction});
  return true;
}

void ReplayTrace::add_wait(uint32_t warp, Stall cause, bool ready, uint64_t begin, uint64_t end) {
  if (end > begin) waits_.push_back({begin, end, warp, cause, ready});
}

void ReplayTrace::use_unit(uint64_t begin, uint64_t end) {
  uses_.push_back({begin, end, static_cast<uint32_t>(issues_.size() - 1)});
}

void ReplayTrace::pass(bool dram, uint64_t begin, uint64_t end, uint64_t bytes) {
  std::vector<Pass>& passes = passes_[dram ? 1 : 0];
  if (!passes.empty() && passes.back().end == begin && end - passes.back().begin <= uint64_t{16} << 16) {
    passes.back().end = end;
    passes.back().bytes += bytes;
    return;
  }
  passes.push_back({begin, end, bytes});
}

std::string ReplayTrace::events_json(uint32_t process, std::string_view name) const {
  std::string text =
      fmt::format(R"({{"ph":"M","pid":{},"name":"process_name","args":{{"name":"{}"}}}})", process, escaped(name));
  add_lives(text, process);
  add_issues(text, process);
  add_thread(text, process, unit_track, "load/store unit");
  for (const Use& use : uses_) {
    const Issue& issue = issues_[use.issue];
    add_slice(text, process, unit_track, use.begin, use.end, names_[issue.instruction],
              fmt::format(R"("warp":{},"address":"{}")", issue.warp, addresses_[issue.instruction]));
  }
  for (const uint32_t thread : {l2_track, dram_track}) {
    add_thread(text, process, thread, thread == l2_track ? "L2, this SM's share" : "DRAM, this SM's share");
    for (const Pass& pass : passes_[thread == l2_track ? 0 : 1]) {
      const uint64_t begin = pass.begin * 1000 >> 16, end = pass.end * 1000 >> 16;
      text += fmt::format(
          ",\n{{\"ph\":\"X\",\"pid\":{},\"tid\":{},\"ts\":{}.{:03},\"dur\":{}.{:03},\"name\":\"{}\","
          "\"args\":{{\"bytes\":{}}}}}",
          process, thread, begin / 1000, begin % 1000, (end - begin) / 1000, (end - begin) % 1000,
          thread == l2_track ? "L2" : "DRAM", pass.bytes);
    }
  }
  return text;
}

// The life of a block is that of its warps together. A warp's stands behind all that it does.
void ReplayTrace::add_lives(std::string& text, uint32_t process) const {
  const auto end_of = [&](const Life& life) { return life.end == open ? last_ + 1 : life.end; };
  uint32_t places = 0;
  for (size_t i = 0; i < lives_.size(); i += warps_of_block_) {
    const Life& first = lives_[i];
    uint64_t end = 0;
    for (size_t w = i; w < i + warps_of_block_; ++w) end = std::max(end, end_of(lives_[w]));
    if (first.place >= places) {
      add_thread(text, process, first_block + first.place, fmt::format("blocks, place {}", first.place));
      places = first.place + 1;
    }
    add_slice(text, process, first_block + first.place, first.begin, std::max(end, first.begin),
              fmt::format("block {}", first.block), "");
  }
  for (size_t id = 0; id < life_of_.size(); ++id) {
    add_thread(text, process, first_warp + static_cast<uint32_t>(id), fmt::format("warp {}, scheduler {}", id, id % 4));
  }
  for (const Life& life : lives_) {
    add_slice(text, process, first_warp + life.place * warps_of_block_ + life.warp, life.begin,
              std::max(end_of(life), life.begin), fmt::format("block {}, warp {}", life.block, life.warp), "");
  }
}

void ReplayTrace::add_issues(std::string& text, uint32_t process) const {
  for (uint32_t s = 0; s < 4; ++s) add_thread(text, process, first_scheduler + s, fmt::format("scheduler {}", s));
  for (const Issue& issue : issues_) {
    const std::string arguments = fmt::format(R"("warp":{},"address":"{}")", issue.warp, addresses_[issue.instruction]);
    for (const uint32_t thread : {first_scheduler + issue.warp % 4, first_warp + issue.warp}) {
      add_slice(text, process, thread, issue.cycle, issue.cycle + 1, names_[issue.instruction], arguments);
    }
  }
  for (const Wait& wait : waits_) {
    add_slice(text, process, first_warp + wait.warp, wait.begin, wait.end, name_of(wait.cause, wait.ready), "");
  }
}

}  // namespace kiln::timing
