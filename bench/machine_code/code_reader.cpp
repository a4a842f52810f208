#include "code_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <random>
#include <set>
#include <utility>

#include "kiln/base/error.h"
#include "kiln/execution/compile.h"

namespace kiln::bench {
namespace {

timing::DisassemblerOptions disassembler_options(const CodeReaderOptions& options) {
  timing::DisassemblerOptions result;
  result.program = options.nvdisasm;
  if (!options.store_folder.empty()) result.store_folder = options.store_folder + "/disassembly";
  return result;
}

}  // namespace

CodeReader::CodeReader(const Catalogue& catalogue, const CodeReaderOptions& options)
    : catalogue_(catalogue),
      nvrtc_(device::Nvrtc::open({options.nvrtc})),
      disassembler_(disassembler_options(options)) {
  if (options.store_folder.empty()) return;
  store::StoreOptions where;
  where.folder = options.store_folder;
  kernels_.emplace(where);
}

std::string CodeReader::description() const {
  const device::NvrtcVersion version = nvrtc_->version();
  return fmt::format("NVRTC {}.{}, {}", version.major, version.minor, disassembler_.program());
}

Target CodeReader::target(const Arch& arch) const {
  return {arch, nvrtc_->version().major, nvrtc_->version().minor};
}

BoundAlgorithm CodeReader::bound(const Request& request, const Arch& arch, const std::string& algorithm) const {
  const Algorithm* const found = catalogue_.find(algorithm);
  if (found == nullptr) throw Error(ErrorCode::invalid_argument, fmt::format("there is no algorithm {}", algorithm));
  BoundAlgorithm bound = found->on(request, target(arch));
  if (const auto refusal = bound.refusal()) {
    throw Error(ErrorCode::invalid_argument, fmt::format("{} refuses {}: {}", algorithm, request.key(), *refusal));
  }
  if (!bound.first_legal()) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("{} has no legal configuration for {} on {}", algorithm, request.key(), arch.name()));
  }
  return bound;
}

Choice CodeReader::default_choice(const Request& request, const Arch& arch, const std::string& algorithm) const {
  return {algorithm, *bound(request, arch, algorithm).first_legal()};
}

std::vector<Choice> CodeReader::sample(const Request& request, const Arch& arch, const std::string& algorithm,
                                       size_t count) const {
  std::vector<Config> legal = bound(request, arch, algorithm).legal();
  std::mt19937_64 random(1);
  count = std::min(count, legal.size());
  for (size_t i = 0; i < count; ++i) std::swap(legal[i], legal[i + random() % (legal.size() - i)]);
  std::vector<Choice> choices;
  for (size_t i = 0; i < count; ++i) choices.push_back({algorithm, std::move(legal[i])});
  return choices;
}

KernelCode CodeReader::code(const Request& request, const Arch& arch, const Choice& choice) {
  const Program program = catalogue_.program(request, target(arch), choice);
  const execution::CompiledProgram compiled =
      execution::compile(*nvrtc_, program, target(arch), kernels_ ? &*kernels_ : nullptr);
  KernelCode most;
  uint32_t local_instructions = 0;
  std::set<std::pair<size_t, std::string>> seen;  // kernels that several launches run
  for_each_launch(program.steps, [&](const Launch& launch) {
    if (!seen.insert({launch.source, launch.entry}).second) return;
    const std::string& cubin = compiled.images[launch.source].cubin;
    const timing::Sass sass = timing::parse_sass(disassembler_.text_of(cubin), launch.entry);
    KernelCode code = kernel_code(sass, timing::find_kernel(timing::read_cubin(cubin), launch.entry));
    local_instructions += code.local_instructions;
    const bool is_more = code.main_loop.tensor_instructions() > most.main_loop.tensor_instructions();
    if (most.kernel.empty() || is_more) most = std::move(code);
  });
  most.local_instructions = local_instructions;
  return most;
}

}  // namespace kiln::bench
