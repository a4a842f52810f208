#include "comparison.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <sstream>

#include "cutlass_peer.h"
#include "kiln/checking/check.h"
#include "kiln/checking/trusted_program.h"
#include "kiln/execution/compile.h"
#include "kiln/execution/executable.h"
#include "kiln/execution/target.h"
#include "kiln/generator/roofline.h"
#include "kiln/templates/catalogue.h"
#include "kiln/tuner/device_timer.h"

namespace kiln::bench {
namespace {

using nlohmann::json;

// The request that is run and checked: of less work, where there is such a one.
Request checked_request(const Request& request) {
  return checking::smaller_request(request, {}).value_or(request);
}

std::vector<std::string> names_of(const Request& request) {
  std::vector<std::string> names;
  for (const Operand& operand : request.operands) names.push_back(operand.name);
  return names;
}

std::vector<cuda_abi::CUdeviceptr> addresses_of(const checking::DeviceOperands& operands) {
  std::vector<cuda_abi::CUdeviceptr> addresses;
  for (const auto& operand : operands.all()) addresses.push_back(operand.device.address());
  return addresses;
}

// Names that CUTLASS's generator gives to the factors and their sums.
struct TileTypes {
  std::string factors;
  DType sums;
};
TileTypes types_of(const Request& request) {
  const DType dtype = request.operands.front().spec.dtype;
  switch (dtype) {
    case DType::f32:
      if (request.arithmetic.tf32) break;
      throw Error(ErrorCode::unsupported, "plain f32 has no tensor instructions: permit tf32");
    case DType::f8e4m3:
      return {"e4m3", DType::f32};
    case DType::f8e5m2:
      return {"e5m2", DType::f32};
    case DType::i8:
      return {"s8", DType::i32};
    case DType::u8:
      return {"u8", DType::i32};
    default:
      break;
  }
  return {std::string(traits(dtype).name), DType::f32};
}

// Whether a configuration of Kiln's kernels on tensor cores has the extents and stages of a tile.
bool has_tile(const Config& config, const CutlassTile& tile) {
  const auto& [block, warp, instruction, stages] = tile;
  const std::pair<const char*, int> wanted[] = {{"BLOCK_M", block[0]}, {"BLOCK_N", block[1]}, {"BLOCK_K", block[2]},
                                                {"WARP_M", warp[0]},   {"WARP_N", warp[1]},   {"STAGES", stages}};
  return std::all_of(std::begin(wanted), std::end(wanted),
                     [&](const auto& entry) { return config.find(entry.first) == entry.second; });
}

}  // namespace

std::vector<CutlassTile> cutlass_tiles(const Request& request, const Arch& arch) {
  std::ifstream file(KILN_CUTLASS_TILES);
  if (!file) {
    throw Error(ErrorCode::io_error, "there is no list of CUTLASS's tiles, " KILN_CUTLASS_TILES,
                "scripts/setup --peers, then scripts/build, make it");
  }
  const TileTypes types = types_of(request);
  const std::string_view sums_of_types = types.sums == DType::i32 ? "s32" : "f32";
  std::vector<CutlassTile> tiles;
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string operation, type, sums;
    int capability = 0;
    CutlassTile tile{};
    words >> operation >> type >> sums >> capability;
    for (auto* extents : {&tile.block, &tile.warp, &tile.instruction}) {
      for (int& extent : *extents) words >> extent;
    }
    words >> tile.stages;
    if (!words) throw Error(ErrorCode::parse_error, fmt::format("{}: not a tile: {}", KILN_CUTLASS_TILES, line));
    const bool of_arch = arch.at_least(8, 0) ? capability >= 80 : capability < 80;
    const bool runs = of_arch && arch.at_least(capability / 10, capability % 10);
    if (operation == request.operation && type == types.factors && sums == sums_of_types && runs) tiles.push_back(tile);
  }
  return tiles;
}

bool is_among(const CutlassTile& tile, const std::vector<std::string>& names) {
  const std::string block = fmt::format("{}x{}x{}", tile.block[0], tile.block[1], tile.block[2]);
  const std::string whole = fmt::format("{}x{}", block, tile.stages);
  return std::any_of(names.begin(), names.end(),
                     [&](const std::string& name) { return name == block || name == whole; });
}

Comparison::Comparison(std::shared_ptr<const device::ContextHandle> context, std::shared_ptr<const device::Nvrtc> nvrtc,
                       store::FileStore& kernels)
    : context_(std::move(context)),
      nvrtc_(std::move(nvrtc)),
      kernels_(kernels),
      catalogue_(make_catalogue(embedded_sources())) {
  const device::DeviceInfo& info = context_->device().info();
  if (info.name.find("machine-code clock") == std::string::npos) {
    throw Error(ErrorCode::unsupported, fmt::format("{} does not tell times by machine code", info.name),
                "KILN_DRIVER=emulator KILN_EMULATOR_CLOCK=machine, with nvdisasm installed");
  }
  target_ = execution::target_for(info.cc_major, info.cc_minor, *nvrtc_);
  figures_ = execution::figures_of(info);
}

std::vector<std::string> Comparison::take_remarks() {
  return std::exchange(remarks_, {});
}

// The rest of a compiler's log says no more.
void Comparison::remark(const std::string& variant, const Error& error) {
  const std::string& message = error.message();
  remarks_.push_back(fmt::format("{}: {}", variant, message.substr(0, message.find('\n'))));
}

Contender Comparison::timed(std::string name, const checking::DeviceOperands& operands,
                            const checking::Checkable& variant) {
  tuner::DeviceTimer timer(context_);
  const auto tell = [&] { return timer.launches_json(operands, variant); };
  const std::optional<std::string> only = device::timed_only(context_, tell);
  Contender result;
  result.name = std::move(name);
  double longest = 0;
  for (const json& launch : json::parse(only ? *only : tell())) {
    const json& time = launch["modelled_time"];
    for (const char* reason : {"not_timed", "not_by_machine_code"}) {
      if (time.contains(reason)) throw Error(ErrorCode::unsupported, time[reason].get<std::string>());
    }
    const double seconds = time["seconds"];
    result.seconds += seconds;
    result.tensor_busy += seconds * time["units"].value("tensor", 0.0);
    result.registers = std::max(result.registers, launch["registers_per_thread"].get<int>());
    if (seconds <= longest) continue;
    longest = seconds;
    result.blocks = launch["occupancy"]["blocks_per_multiprocessor"];
    result.waves = time["waves"];
    result.bound = time["bound"];
  }
  result.tensor_busy /= result.seconds;
  timed_.push_back(result);
  return result;
}

void Comparison::check(Contender& contender, const Request& request, const checking::Checkable& variant) {
  checking::CheckOptions options;
  options.full_flops = 1e9;
  options.full_elements = int64_t{1} << 22;
  options.fills = {reference::Values::uniform, reference::Values::integers};
  checking::Checker checker(context_, request, options);
  const device::Current current(*context_);  // launches_json() tells of the current context
  (void)context_->driver().launches_json();  // of what came before
  const checking::Verdict verdict = checker.check_with_reference(variant);
  contender.is_right = verdict.passed;
  contender.verdict = verdict.text;
  double issued = 0, tensor = 0, sectors = 0, wavefronts = 0, accesses = 0;
  for (const json& launch : json::parse(context_->driver().launches_json())) {
    const json& counters = launch["counters"];
    const auto count = [&](const char* counter) { return counters[counter].get<double>(); };
    issued += count("issued");
    tensor += count("tensor");
    sectors += count("global_sectors");
    wavefronts += count("shared_wavefronts");
    accesses += count("shared_load") + count("shared_store") + count("shared_atomic");
  }
  const double runs = static_cast<double>(options.fills.size());
  contender.instructions = tensor > 0 ? issued / tensor : 0;
  contender.sectors = sectors / runs / (roofline(request, target_.arch, figures_).flops / 2) * 1000;
  contender.wavefronts = accesses > 0 ? wavefronts / accesses : 0;
}

std::optional<Contender> Comparison::kiln(const Request& request, size_t candidates) {
  const Candidates found = catalogue_.candidates(request, target_, figures_);
  if (found.ranked.empty()) return std::nullopt;
  const auto search = tuner::make_search({.candidates = candidates}, found.ranked, found.best_guess()->choice);
  return fastest(request, *search);
}

std::optional<Contender> Comparison::kiln_with(const Request& request, const std::vector<CutlassTile>& tiles) {
  std::vector<Candidate> ranked = catalogue_.candidates(request, target_, figures_).ranked;
  std::erase_if(ranked, [&](const Candidate& candidate) {
    return !candidate.choice.algorithm.ends_with("_tensor") ||
           std::none_of(tiles.begin(), tiles.end(),
                        [&](const CutlassTile& tile) { return has_tile(candidate.choice.config, tile); });
  });
  if (ranked.empty()) return std::nullopt;
  const auto search = tuner::make_search({.kind = tuner::SearchKind::exhaustive}, ranked, ranked.front().choice);
  return fastest(request, *search);
}

std::optional<Contender> Comparison::fastest(const Request& request, tuner::Search& search) {
  const checking::DeviceOperands operands(context_, request, checking::Placement::as_allocated);
  // The rules that prune were kept for the request itself.
  const auto load = [&](const Request& layer, const Choice& choice) {
    const BoundAlgorithm algorithm = catalogue_.find(choice.algorithm)->on(layer, target_);
    const Program program = algorithm.program(catalogue_.library(), choice.config, Rules::necessary);
    return execution::Executable(context_,
                                 execution::compile(*nvrtc_, program, target_, &kernels_, execution::Products::cubin),
                                 names_of(layer));
  };
  std::optional<Contender> best;
  Choice chosen;
  while (const auto choice = search.next()) {
    const std::string name = choice->algorithm + " " + choice->config.print();
    tuner::Trial trial;
    trial.choice = *choice;
    trial.outcome = tuner::Outcome::crashed;
    try {
      const execution::Executable variant = load(request, *choice);
      const Contender contender = timed(name, operands, variant);
      trial.outcome = tuner::Outcome::timed;
      trial.seconds = contender.seconds;
      if (!best || contender.seconds < best->seconds) {
        best = contender;
        chosen = *choice;
      }
    } catch (const Error& error) {
      remark(fmt::format("Kiln's {}", name), error);
    }
    search.observe(trial);
  }
  if (!best) return best;
  const Request smaller = checked_request(request);
  const execution::Executable variant = load(smaller, chosen);
  check(*best, smaller, variant);
  return best;
}

std::optional<Contender> Comparison::cutlass(const Request& request, const std::vector<CutlassTile>& tiles,
                                             const std::vector<int>& slices) {
  const checking::DeviceOperands operands(context_, request, checking::Placement::as_allocated);
  const DType sums = types_of(request).sums;
  std::optional<Contender> best;
  CutlassChoice chosen;
  for (const CutlassTile& tile : tiles) {
    for (const int count : slices) {
      // Blocks that add in turn wait for each other, and the clock tells no time of that.
      const CutlassChoice choice{
          .tile = tile, .sum = sums, .slices = count, .parallel = count > 1 && request.operation != "gemm"};
      try {
        CutlassPeer peer(context_, *nvrtc_, kernels_, request, target_, choice, execution::Products::cubin);
        peer.prepare(addresses_of(operands), operands.values());
        const Contender contender = timed(choice.print(), operands, peer.checkable());
        if (best && contender.seconds >= best->seconds) continue;
        best = contender;
        chosen = choice;
      } catch (const Error& error) {
        remark(fmt::format("CUTLASS's {}", choice.print()), error);
      }
    }
  }
  if (!best) return best;
  const Request smaller = checked_request(request);
  CutlassPeer peer(context_, *nvrtc_, kernels_, smaller, target_, chosen, execution::Products::cubin);
  check(*best, smaller, peer.checkable());
  return best;
}

std::optional<Contender> Comparison::triton(const Request& request, const std::vector<TritonProgram>& programs) {
  const checking::DeviceOperands operands(context_, request, checking::Placement::as_allocated);
  std::optional<Contender> best;
  const TritonProgram* chosen = nullptr;
  for (const TritonProgram& program : programs) {
    if (program.whole.request.key() != request.key()) continue;
    try {
      const TritonPeer peer(context_, program);
      const Contender contender = timed(program.name, operands, peer.checkable(program.whole));
      if (best && contender.seconds >= best->seconds) continue;
      best = contender;
      chosen = &program;
    } catch (const Error& error) {
      remark(fmt::format("Triton's {}", program.name), error);
    }
  }
  if (!best) return best;
  const TritonPeer peer(context_, *chosen);
  check(*best, chosen->smaller.request, peer.checkable(chosen->smaller));
  return best;
}

}  // namespace kiln::bench
