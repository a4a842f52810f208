#include "launch_record.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <numeric>
#include <string>

namespace kiln::emulator {
namespace {

using Json = nlohmann::ordered_json;

std::string_view name(OccupancyLimit limit) {
  switch (limit) {
    case OccupancyLimit::blocks:
      return "blocks";
    case OccupancyLimit::warps:
      return "warps";
    case OccupancyLimit::registers:
      return "registers";
    case OccupancyLimit::shared_memory:
      return "shared_memory";
  }
  return "";
}

Json counters_json(const Counters& counters) {
  Json json;
  for (const NamedCounter& counter : named_counters) json[std::string(counter.name)] = counters.*counter.count;
  return json;
}

Json ptx_time_json(const LaunchTime& time) {
  return {{"seconds", time.seconds}, {"clock", "ptx"},      {"bound", time.bound},
          {"launch", time.launch},   {"issue", time.issue}, {"arithmetic", time.arithmetic},
          {"l1", time.l1},           {"l2", time.l2},       {"dram", time.dram},
          {"latency", time.latency}};
}

// Share of each cause in all the cycles in which warps did not issue.
Json waits_json(const timing::ReplayResult& replayed) {
  const auto all = static_cast<double>(std::accumulate(replayed.stalled.begin(), replayed.stalled.end(), uint64_t{0}));
  Json waits = Json::object();
  for (size_t i = 0; i < replayed.stalled.size(); ++i) {
    const auto cause = timing::to_string(static_cast<timing::Stall>(i));
    waits[std::string(cause)] = all == 0 ? 0 : static_cast<double>(replayed.stalled[i]) / all;
  }
  return waits;
}

// Hit rates: L1's among the sectors that are asked of it, L2's among those that L1 lacks or that bypass it.
Json hits_json(const timing::ModelledTime& time) {
  const timing::ReplayResult& replayed = time.replayed;
  Json hits = Json::object();
  if (replayed.l1_sectors > 0) {
    const uint64_t lacking = replayed.l2_sectors - replayed.bypassing_sectors;
    hits["l1"] = 1 - static_cast<double>(lacking) / static_cast<double>(replayed.l1_sectors);
  }
  if (replayed.l2_sectors > 0) {
    hits["l2"] = 1 - static_cast<double>(replayed.dram_bytes_read) / (32 * static_cast<double>(replayed.l2_sectors));
  }
  return hits;
}

Json machine_time_json(const timing::ModelledTime& time) {
  Json units = Json::object(), unknown = Json::array();
  for (const auto& [unit, share] : time.units) units[unit] = share;
  for (const auto& [opcode, count] : time.report.unknown_opcodes) unknown.push_back(opcode);
  return {{"seconds", time.seconds},
          {"clock", fmt::format("machine code {}", timing::model_version)},
          {"bound", time.bound},
          {"units", units},
          {"waits", waits_json(time.replayed)},
          {"hits", hits_json(time)},
          {"waves", time.waves},
          {"replayed_blocks", time.replayed_blocks},
          {"replayed_share_of_paths", time.path_share},
          {"replayed_instructions", time.replayed.issued},
          {"replayed_cycles", time.replayed.cycles},
          {"code_bytes", time.code_bytes},
          {"guessed_branches", time.report.guessed_branches},
          {"unknown_instructions", unknown},
          {"unclassified_instructions", time.unclassified},
          {"unknown_addresses", time.report.unknown_addresses}};
}

Json time_json(const LaunchRecord& record) {
  if (record.machine.time) return machine_time_json(*record.machine.time);
  if (!record.seconds()) return {{"clock", "none"}, {"not_timed", record.not_timed()}};
  Json json = ptx_time_json(record.time);
  if (!record.machine.refusal.empty()) json["not_by_machine_code"] = record.machine.refusal;
  return json;
}

}  // namespace

std::string LaunchRecord::not_timed() const {
  if (seconds()) return "";
  return machine.refusal.empty() ? "tensor instructions need nvdisasm"
                                 : "tensor instructions need machine code: " + machine.refusal;
}

std::string to_json(const LaunchRecord& record, uint32_t process) {
  Json json = {{"device", record.device},
               {"kernel", record.kernel},
               {"grid", {record.grid.x, record.grid.y, record.grid.z}},
               {"block", {record.block.x, record.block.y, record.block.z}},
               {"shared_bytes", record.shared_bytes},
               {"registers_per_thread", record.registers_per_thread},
               {"occupancy",
                {{"blocks_per_multiprocessor", record.occupancy.blocks_per_multiprocessor},
                 {"warps_per_multiprocessor", record.occupancy.warps_per_multiprocessor},
                 {"limit", name(record.occupancy.limit)}}},
               {"counters", counters_json(record.counters)},
               {"modelled_time", time_json(record)}};
  if (const auto& trace = record.machine.trace) {
    const std::string name = fmt::format("{}, one SM of {}", record.kernel, record.device);
    json["trace"] = {{"instructions", trace->instructions()},
                     {"whole", trace->is_whole()},
                     {"events", trace->events_json(process, name)}};
  }
  return json.dump();
}

}  // namespace kiln::emulator
