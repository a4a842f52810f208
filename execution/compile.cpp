#include "kiln/execution/compile.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string_view>

#include "kiln/base/digest.h"
#include "kiln/base/error.h"
#include "kiln/device/arch.h"
#include "kiln/execution/user_code_error.h"
#include "kiln/generator/code_text.h"
#include "source_name.h"

namespace kiln::execution {
namespace {

device::CompileOptions options_for(const Target& target, Products products) {
  constexpr auto features = device::ArchFeatures::specific;
  device::CompileOptions options;
  options.arch = products == Products::ptx ? device::virtual_arch(target.arch.major, target.arch.minor, features)
                                           : device::real_arch(target.arch.major, target.arch.minor, features);
  return options;
}

// One source, as a program that launches nothing: what stores keep, for every program that has it. An error in user
// code is reported as one, not as a fault of the kernel that it was placed in.
CompiledProgram compile_source(const device::Nvrtc& nvrtc, const Program& source, const std::string& name,
                               const Target& target, Products products) {
  try {
    device::Compiled compiled = nvrtc.compile(source.sources.front(), name, options_for(target, products));
    return {.program = source,
            .images = {{std::move(compiled.ptx), std::move(compiled.cubin), std::move(compiled.resources)}},
            .log = std::move(compiled.log),
            .seconds = compiled.seconds};
  } catch (const Error& error) {
    if (const std::optional<std::string> mistakes = user_code_errors(error.message())) throw UserCodeError(*mistakes);
    throw;
  }
}

// The same from `kernels`, or made and left there.
CompiledProgram obtain_source(const device::Nvrtc& nvrtc, const Program& source, const std::string& name,
                              const Target& target, Products products, store::FileStore& kernels) {
  std::optional<CompiledProgram> result;
  kernels.obtain(
      compile_digest(nvrtc, source, target, products),
      [&](std::string_view bytes) {
        try {
          result = deserialise(bytes);
        } catch (const Error&) {
          return false;  // of another version of Kiln
        }
        // A digest is not proof against a file that was put there. Sources that differ in comments share what is made.
        const std::vector<std::string>& kept = result->program.sources;
        return kept.size() == 1 && result->program.steps.empty() && code_of(kept.front()) == code_of(source.sources[0]);
      },
      [&] { return serialise(result.emplace(compile_source(nvrtc, source, name, target, products))); });
  return std::move(*result);
}

// Parameters of a kernel, from its declaration in PTX; nothing if it is not there.
std::optional<size_t> parameter_count(std::string_view ptx, const std::string& kernel) {
  const size_t entry = ptx.find(fmt::format(".entry {}(", kernel));
  if (entry == std::string_view::npos) return std::nullopt;
  const std::string_view list = ptx.substr(entry, ptx.find(')', entry) - entry);
  size_t count = 0;
  for (size_t at = list.find(".param "); at != std::string_view::npos; at = list.find(".param ", at + 1)) ++count;
  return count;
}

// A driver reads as many arguments as the kernel has parameters, whatever it was given.
void require_matching_arguments(const CompiledProgram& compiled) {
  for (const Step& step : compiled.program.steps) {
    const auto* launch = std::get_if<Launch>(&step);
    if (launch == nullptr || launch->source >= compiled.images.size()) continue;
    const std::string& ptx = compiled.images[launch->source].ptx;
    const std::optional<size_t> parameters = parameter_count(ptx, launch->entry);
    if (!parameters && !ptx.empty()) {
      throw Error(ErrorCode::compile_failed, fmt::format("its source has no kernel {}", launch->entry),
                  "it must be an extern \"C\" __global__ function");
    }
    if (!parameters || *parameters == launch->arguments.size()) continue;
    throw Error(ErrorCode::compile_failed,
                fmt::format("kernel {} has {} parameters, but its launch gives it {} arguments", launch->entry,
                            *parameters, launch->arguments.size()));
  }
}

}  // namespace

std::string source_name(const Program& program, size_t source) {
  for (const Step& step : program.steps) {
    const auto* launch = std::get_if<Launch>(&step);
    if (launch != nullptr && launch->source == source) return launch->entry + ".cu";
  }
  return fmt::format("source_{}.cu", source);
}

const std::string& KernelImage::loadable(const device::Driver& driver) const {
  return driver.is_emulated() || cubin.empty() ? ptx : cubin;
}

device::KernelResources CompiledProgram::peak_resources() const {
  device::KernelResources peak;
  const auto raise = [](int& to, int value) { to = std::max(to, value); };
  for (const KernelImage& image : images) {
    for (const device::KernelResources& kernel : image.resources) {
      peak.arch = kernel.arch;
      raise(peak.registers, kernel.registers);
      raise(peak.spill_stores, kernel.spill_stores);
      raise(peak.spill_loads, kernel.spill_loads);
      raise(peak.stack, kernel.stack);
      raise(peak.static_shared, kernel.static_shared);
      raise(peak.constant, kernel.constant);
      raise(peak.barriers, kernel.barriers);
    }
  }
  return peak;
}

CompiledProgram compile(const device::Nvrtc& nvrtc, const Program& program, const Target& target,
                        store::FileStore* kernels, Products products) {
  CompiledProgram result;
  result.program = program;
  for (size_t i = 0; i < program.sources.size(); ++i) {
    Program source;
    source.sources = {program.sources[i]};
    const std::string name = source_name(program, i);
    CompiledProgram compiled = kernels == nullptr ? compile_source(nvrtc, source, name, target, products)
                                                  : obtain_source(nvrtc, source, name, target, products, *kernels);
    result.images.push_back(std::move(compiled.images.front()));
    result.log += compiled.log;
    result.seconds += compiled.seconds;
  }
  require_matching_arguments(result);
  return result;
}

std::string compile_digest(const device::Nvrtc& nvrtc, const Program& program, const Target& target,
                           Products products) {
  Digest digest;
  digest.add(program.digest());
  for (const std::string& option : nvrtc.options(options_for(target, products))) digest.add(option);
  digest.add(fmt::format("nvrtc {}.{}", nvrtc.version().major, nvrtc.version().minor));
  return digest.hex();
}

}  // namespace kiln::execution
