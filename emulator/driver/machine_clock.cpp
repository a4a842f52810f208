#include "machine_clock.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "kiln/base/error.h"

namespace kiln::emulator {
namespace {

// Operands where a fresh process would have them: addresses differ from run to run, and decide which lines share a set
// of a cache.
class CanonicalAddresses {
 public:
  explicit CanonicalAddresses(const RegionTable& memory) : memory_(memory) {}

  /// A copy of `parameters` in which words that lie in a valid region do so at its canonical place.
  std::string moved(std::span<const std::byte> parameters) {
    std::string bytes(reinterpret_cast<const char*>(parameters.data()), parameters.size());
    for (size_t at = 0; at + sizeof(uint64_t) <= bytes.size(); at += sizeof(uint64_t)) {
      uint64_t word = 0;
      std::memcpy(&word, bytes.data() + at, sizeof word);
      if (const Region* region = memory_.find(word)) {
        word = place_of(*region) + (word - region->begin);
        std::memcpy(bytes.data() + at, &word, sizeof word);
      }
    }
    return bytes;
  }

  /// The word at a canonical address, or at an actual one that was read from memory.
  bool word_at(uint64_t address, uint32_t& word) const {
    uint64_t actual = address;
    for (const Place& place : places_) {
      const uint64_t bytes = place.end - place.begin;
      if (address - place.canonical < bytes) actual = place.begin + (address - place.canonical);
    }
    const Region* region = memory_.find(actual);
    if (region == nullptr || region->end - actual < sizeof word) return false;
    std::memcpy(&word, reinterpret_cast<const void*>(actual), sizeof word);  // device memory is host memory
    return true;
  }

  /// The parts of `left` in regions that parameters lie in, at the addresses by which operands are timed.
  timing::AddressRanges canonical(const LeftInL2& left) const {
    std::vector<timing::AddressRange> ranges;
    for (const StoredPart& part : left) {
      const Region* region = memory_.find(part.begin);
      if (region == nullptr || region->name != part.region) continue;
      for (const Place& place : places_) {
        if (place.begin != region->begin) continue;
        ranges.push_back({place.canonical + (part.begin - place.begin), place.canonical + (part.end - place.begin)});
      }
    }
    return timing::united(std::move(ranges));
  }

  /// The other way round.
  LeftInL2 actual(const timing::AddressRanges& stored) const {
    LeftInL2 parts;
    for (const Place& place : places_) {
      for (const timing::AddressRange& range : stored) {
        const uint64_t begin = std::max(range.begin, place.canonical);
        const uint64_t end = std::min(range.end, place.canonical + (place.end - place.begin));
        if (begin >= end) continue;
        parts.push_back({memory_.find(place.begin)->name, place.begin + (begin - place.canonical),
                         place.begin + (end - place.canonical)});
      }
    }
    return parts;
  }

 private:
  struct Place {
    uint64_t begin = 0, end = 0, canonical = 0;
  };
  static constexpr uint64_t first = uint64_t{1} << 40, alignment = 512;

  uint64_t place_of(const Region& region) {
    for (const Place& place : places_) {
      if (place.begin == region.begin) return place.canonical;
    }
    places_.push_back({region.begin, region.end, next_});
    const uint64_t canonical = next_;
    next_ += (region.end - region.begin + alignment - 1) / alignment * alignment;
    return canonical;
  }

  const RegionTable& memory_;
  std::vector<Place> places_;
  uint64_t next_ = first;
};

constexpr size_t most_times = 1024;

timing::Launch launch_of(const MachineLaunch& launch, std::string parameters) {
  timing::Launch result;
  result.grid = {launch.grid.x, launch.grid.y, launch.grid.z};
  result.block = {launch.block.x, launch.block.y, launch.block.z};
  result.dynamic_shared_bytes = launch.dynamic_shared_bytes;
  result.parameters = std::move(parameters);
  result.instruction_limit = 4'000'000;  // some seconds of the host
  return result;
}

// Bank 3 with what the module's variables hold now; device memory is host memory.
std::string variables_of(const timing::KernelFacts& facts, const std::vector<GlobalVariable>& variables) {
  std::string bank = facts.variables;
  for (const timing::ConstantVariable& place : facts.variable_places) {
    const auto found = std::ranges::find(variables, place.name, &GlobalVariable::name);
    if (found == variables.end() || found->bytes != place.bytes) continue;
    if (place.offset > bank.size() || bank.size() - place.offset < place.bytes) continue;
    std::memcpy(bank.data() + place.offset, reinterpret_cast<const void*>(found->address), place.bytes);
  }
  return bank;
}

std::string key_of(std::string_view kernel, const timing::Card& card, const timing::Launch& launch) {
  std::string key = fmt::format("{} {} {} {} {} ", kernel, card.name, fmt::join(launch.grid, " "),
                                fmt::join(launch.block, " "), launch.dynamic_shared_bytes);
  for (const timing::AddressRange& range : launch.in_l2) key += fmt::format("{}-{} ", range.begin, range.end);
  return key + launch.parameters + launch.variables;
}

}  // namespace

MachineCode::MachineCode(std::string cubin) : cubin_(std::move(cubin)), kernels_(timing::read_cubin(cubin_)) {}

const timing::KernelFacts* MachineCode::facts(std::string_view kernel) const {
  const auto found = std::find_if(kernels_.begin(), kernels_.end(), [&](const auto& f) { return f.name == kernel; });
  return found == kernels_.end() ? nullptr : &*found;
}

MachineTime MachineClock::time(const MachineCode& code, const MachineLaunch& launch, const timing::Card& card,
                               const RegionTable& memory, bool holds_data) {
  const timing::KernelFacts* facts = code.facts(launch.kernel);
  if (facts == nullptr) return {std::nullopt, fmt::format("the cubin has no kernel {}", launch.kernel)};
  CanonicalAddresses addresses(memory);
  timing::Launch timed = launch_of(launch, addresses.moved(launch.parameters));
  timed.in_l2 = addresses.canonical(launch.in_l2);
  timed.variables = variables_of(*facts, launch.variables);
  const std::string key = key_of(launch.kernel, card, timed);
  const std::lock_guard lock(code.mutex_);
  std::optional<timing::ReplayTrace> trace;
  if (launch.traced_instructions > 0) trace.emplace(launch.traced_instructions);
  const auto known = code.times_.find(key);
  const auto told = [&](const timing::ModelledTime& time) -> MachineTime {
    const bool stays = timing::bytes_of(time.stored) <= card.l2_bytes / 2;
    return {time, "", std::move(trace), stays ? addresses.actual(time.stored) : LeftInL2{}};
  };
  if (known != code.times_.end() && !trace) return told(known->second);
  const timing::ModelOptions options{.trace = trace ? &*trace : nullptr};
  try {
    const timing::Sass& sass = sass_of(code, launch.kernel);
    if (sass.arch / 10 != static_cast<int>(card.arch / 10)) {
      return {std::nullopt, fmt::format("the machine code is of sm_{}, whatever the fat binary says", sass.arch)};
    }
    // Most kernels go the same way whatever the data are, and this is found out sooner without them.
    try {
      timing::ModelledTime time = timing::model_time(sass, *facts, timed, card, options);
      if (time.report.unknown_addresses == 0) {
        if (code.times_.size() == most_times) code.times_.clear();  // of kernels that get another number each time
        return told(code.times_.emplace(key, std::move(time)).first->second);
      }
    } catch (const Error& error) {
      if (error.code() != ErrorCode::unsupported) throw;
    }
    if (!holds_data) return {std::nullopt, "its data decide how long it takes"};
    timed.memory = [&](uint64_t address, uint32_t& word) { return addresses.word_at(address, word); };
    return told(timing::model_time(sass, *facts, timed, card, options));
  } catch (const Error& error) {
    return {std::nullopt, error.what()};
  }
}

const timing::Sass& MachineClock::sass_of(const MachineCode& code, std::string_view kernel) {
  const auto known = code.sass_.find(kernel);
  if (known != code.sass_.end()) return known->second;
  if (!code.text_) code.text_ = disassembler_.text_of(code.cubin_);
  return code.sass_.emplace(kernel, timing::parse_sass(*code.text_, std::string(kernel))).first->second;
}

}  // namespace kiln::emulator
