#include "kiln/execution/compile.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string_view>

#include "kiln/base/digest.h"
#include "kiln/base/error.h"
#include "kiln/device/arch.h"
#include "kiln/device/image.h"
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

// A source whatever it is loaded with, as a program that launches nothing.
Program alone(const Source& source) {
  Program program;
  program.sources.emplace_back(source.code);
  return program;
}

// One source, as a program that launches nothing: what stores keep, for every program that has it. An error in user
// code is reported as one, not as a fault of the kernel that it was placed in.
CompiledProgram compile_source(const device::Nvrtc& nvrtc, const Program& source, const std::string& name,
                               const Target& target, Products products) {
  try {
    device::Compiled compiled = nvrtc.compile(source.sources.front().code, name, options_for(target, products));
    return {.program = source,
            .images = {{std::move(compiled.ptx), std::move(compiled.cubin), std::move(compiled.resources)}},
            .log = std::move(compiled.log),
            .seconds = compiled.seconds};
  } catch (const Error& error) {
    if (const std::optional<std::string> mistakes = user_code_errors(error.message())) throw UserCodeError(*mistakes);
    throw;
  }
}

// A source in a store's bytes; nothing where they are of another source or version of Kiln. A digest is not proof
// against a file that was put there. Sources that differ in comments share what is made.
std::optional<CompiledProgram> stored_source(std::string_view bytes, const Program& source) {
  try {
    CompiledProgram stored = deserialise(bytes);
    const std::vector<Source>& kept = stored.program.sources;
    const bool is_same = kept.size() == 1 && stored.images.size() == 1 && stored.program.steps.empty() &&
                         code_of(kept.front().code) == code_of(source.sources.front().code);
    return is_same ? std::optional(std::move(stored)) : std::nullopt;
  } catch (const Error&) {
    return std::nullopt;
  }
}

// Hands what a store gives to stored_source().
store::FileStore::Take into(std::optional<CompiledProgram>& result, const Program& source) {
  return [&](std::string_view bytes) {
    result = stored_source(bytes, source);
    return result.has_value();
  };
}

// compile_source() from `kernels`, or made and left there.
CompiledProgram obtain_source(const device::Nvrtc& nvrtc, const Program& source, const std::string& name,
                              const Target& target, Products products, store::FileStore& kernels) {
  std::optional<CompiledProgram> result;
  kernels.obtain(compile_digest(nvrtc, source, target, products), into(result, source),
                 [&] { return serialise(result.emplace(compile_source(nvrtc, source, name, target, products))); });
  return std::move(*result);
}

void add_source(CompiledProgram compiled, CompiledProgram& to) {
  to.images.push_back(std::move(compiled.images.front()));
  to.log += compiled.log;
  to.seconds += compiled.seconds;
}

// Kind of a declaration `.param .u64 name`, `.param .f32 name`, `.param .align 8 .b8 name[24]`, `.param .align 64 .b8
// name[128]` and `.param .u64 .ptr ...`; nothing for a type that no argument has (PTX ISA, "Kernel Function
// Parameters").
std::optional<ParameterKind> declared_kind(std::string_view parameter) {
  if (parameter.find('[') != std::string_view::npos) {
    const bool is_map = parameter.find(".align 64") != std::string_view::npos;  // struct UserArguments holds pointers
    return is_map ? ParameterKind::tensor_map : ParameterKind::user;
  }
  for (const std::string_view word : {".u64", ".s64", ".b64"}) {
    if (parameter.find(word) != std::string_view::npos) return ParameterKind::word;
  }
  if (parameter.find(".f32") != std::string_view::npos) return ParameterKind::number;
  return std::nullopt;
}

// Parameters of a kernel, from its declaration in PTX; nothing if it is not there.
std::optional<std::vector<std::optional<ParameterKind>>> declared_parameters(std::string_view ptx,
                                                                             const std::string& kernel) {
  const size_t entry = ptx.find(fmt::format(".entry {}(", kernel));
  if (entry == std::string_view::npos) return std::nullopt;
  const std::string_view list = ptx.substr(entry, ptx.find(')', entry) - entry);
  std::vector<std::optional<ParameterKind>> kinds;
  constexpr std::string_view begin = ".param ";
  for (size_t at = list.find(begin); at != std::string_view::npos;) {
    const size_t next = list.find(begin, at + 1);
    kinds.push_back(declared_kind(list.substr(at + begin.size(), next - at - begin.size())));
    at = next;
  }
  return kinds;
}

std::string_view in_words(ParameterKind kind) {
  switch (kind) {
    case ParameterKind::word:
      return "a pointer or an integer of 8 bytes";
    case ParameterKind::number:
      return "a float";
    case ParameterKind::user:
      return "struct UserArguments";
    case ParameterKind::tensor_map:
      return "a tensor map";
  }
  return "";
}

// A driver reads as many arguments as the kernel has parameters, and as many bytes of each, whatever it was given.
void require_matching_arguments(const Launch& launch, std::string_view ptx) {
  const auto declared = declared_parameters(ptx, launch.entry);
  if (!declared && !ptx.empty()) {
    throw Error(ErrorCode::compile_failed, fmt::format("its source has no kernel {}", launch.entry),
                "it must be an extern \"C\" __global__ function");
  }
  if (!declared) return;
  if (declared->size() != launch.arguments.size()) {
    throw Error(ErrorCode::compile_failed,
                fmt::format("kernel {} has {} parameters, but its launch gives it {} arguments", launch.entry,
                            declared->size(), launch.arguments.size()));
  }
  for (size_t i = 0; i < declared->size(); ++i) {
    const Argument& argument = launch.arguments[i];
    if ((*declared)[i] == parameter_kind(argument)) continue;
    throw Error(ErrorCode::compile_failed,
                fmt::format("kernel {}: argument {} ({}) is {}, but the kernel declares {} there", launch.entry, i + 1,
                            describe(argument), in_words(parameter_kind(argument)),
                            (*declared)[i] ? in_words(*(*declared)[i]) : "something else"),
                "give the kernel's parameters the order and types of the launch's arguments");
  }
}

void require_matching_arguments(const CompiledProgram& compiled) {
  for_each_launch(compiled.program.steps, [&](const Launch& launch) {
    if (launch.source < compiled.images.size()) {
      require_matching_arguments(launch, compiled.images[launch.source].ptx);
    }
  });
}

}  // namespace

std::string source_name(const Program& program, size_t source) {
  std::string name;
  for_each_launch(program.steps, [&](const Launch& launch) {
    if (launch.source == source && name.empty()) name = launch.entry + ".cu";
  });
  return name.empty() ? fmt::format("source_{}.cu", source) : name;
}

std::string KernelImage::loadable(const device::Driver& driver) const {
  return device::loadable_image(driver, ptx, cubin);
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

std::optional<CompiledProgram> find_compiled(const device::Nvrtc& nvrtc, const Program& program, const Target& target,
                                             store::FileStore& kernels, Products products) {
  CompiledProgram result;
  result.program = program;
  for (const Source& source : program.sources) {
    const Program key = alone(source);
    std::optional<CompiledProgram> stored;
    if (!kernels.find(compile_digest(nvrtc, key, target, products), into(stored, key))) return std::nullopt;
    add_source(std::move(*stored), result);
  }
  require_matching_arguments(result);
  return result;
}

CompiledProgram compile(const device::Nvrtc& nvrtc, const Program& program, const Target& target,
                        store::FileStore* kernels, Products products) {
  CompiledProgram result;
  result.program = program;
  for (size_t i = 0; i < program.sources.size(); ++i) {
    const Program source = alone(program.sources[i]);
    const std::string name = source_name(program, i);
    add_source(kernels == nullptr ? compile_source(nvrtc, source, name, target, products)
                                  : obtain_source(nvrtc, source, name, target, products, *kernels),
               result);
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
