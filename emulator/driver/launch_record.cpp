#include "driver/launch_record.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

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
  return {{"issued", counters.issued},
          {"fma_f32", counters.fma_f32},
          {"fma_f16", counters.fma_f16},
          {"fma_f64", counters.fma_f64},
          {"integer", counters.integer},
          {"special", counters.special},
          {"conversion", counters.conversion},
          {"control", counters.control},
          {"warp_exchange", counters.warp_exchange},
          {"global_load", counters.global_load},
          {"global_store", counters.global_store},
          {"global_atomic", counters.global_atomic},
          {"shared_load", counters.shared_load},
          {"shared_store", counters.shared_store},
          {"shared_atomic", counters.shared_atomic},
          {"local_access", counters.local_access},
          {"constant_access", counters.constant_access},
          {"global_sectors", counters.global_sectors},
          {"unique_load_sectors", counters.unique_load_sectors},
          {"unique_store_sectors", counters.unique_store_sectors},
          {"block_sectors", counters.block_sectors},
          {"shared_wavefronts", counters.shared_wavefronts},
          {"active_lanes", counters.active_lanes},
          {"barriers", counters.barriers},
          {"blocks_total", counters.blocks_total},
          {"blocks_counted", counters.blocks_counted}};
}

Json ptx_time_json(const LaunchTime& time) {
  return {{"seconds", time.seconds}, {"clock", "ptx"},      {"bound", time.bound},
          {"launch", time.launch},   {"issue", time.issue}, {"arithmetic", time.arithmetic},
          {"l1", time.l1},           {"l2", time.l2},       {"dram", time.dram},
          {"latency", time.latency}};
}

Json machine_time_json(const timing::ModelledTime& time) {
  Json units = Json::object(), unknown = Json::array();
  for (const auto& [unit, share] : time.units) units[unit] = share;
  for (const auto& [opcode, count] : time.report.unknown_opcodes) unknown.push_back(opcode);
  return {{"seconds", time.seconds},
          {"clock", fmt::format("machine code {}", timing::model_version)},
          {"bound", time.bound},
          {"units", units},
          {"waves", time.waves},
          {"replayed_blocks", time.replayed_blocks},
          {"code_bytes", time.code_bytes},
          {"guessed_branches", time.report.guessed_branches},
          {"unknown_instructions", unknown},
          {"unknown_addresses", time.report.unknown_addresses}};
}

Json time_json(const LaunchRecord& record) {
  if (record.machine.time) return machine_time_json(*record.machine.time);
  Json json = ptx_time_json(record.time);
  if (!record.machine.refusal.empty()) json["not_by_machine_code"] = record.machine.refusal;
  return json;
}

}  // namespace

std::string to_json(const LaunchRecord& record) {
  const Json json = {{"device", record.device},
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
  return json.dump();
}

}  // namespace kiln::emulator
