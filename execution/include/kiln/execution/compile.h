// From a Program to loadable images: one NVRTC compile per source.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kiln/device/nvrtc.h"
#include "kiln/generator/arch.h"
#include "kiln/generator/program.h"
#include "kiln/store/file_store.h"

namespace kiln::execution {

/// How far compile() goes.
enum class Products {
  cubin,  ///< PTX, and what ptxas makes of it: what a real device runs, and the resources that it takes.
  ptx,    ///< PTX alone, which is what the emulated device runs: a third of the time less.
};

/// The product of compiling one source.
struct KernelImage {
  std::string ptx;
  std::string cubin;                               ///< For exactly the target's architecture; empty for Products::ptx.
  std::vector<device::KernelResources> resources;  ///< Resources of each kernel, from ptxas; empty for Products::ptx.

  /// Image to load on `driver` (device::loadable_image()).
  std::string loadable(const device::Driver& driver) const;
};

/// A Program with its images. A value: knows no device, can be stored and sent to another process.
struct CompiledProgram {
  Program program;
  std::vector<KernelImage> images;  ///< Parallel to program.sources.
  std::string log;                  ///< Warnings and ptxas' report, all sources.
  double seconds = 0;               ///< Wall-clock time of the compiles.

  /// The launched kernel that uses most of each resource: one line of numbers for a table. Zeros if there is none.
  device::KernelResources peak_resources() const;
};

/// Compiles every source of `program` for the architecture of `target`. Thread-safe.
///
/// Throws Error(compile_failed) with NVRTC's log, or if a launch gives its kernel another number of arguments than it
/// has parameters; UserCodeError (user_code_error.h) for a mistake in user code; Error(unsupported) if `nvrtc` does not
/// know the architecture. Cannot be interrupted (ptxas may hang): where a time limit matters, run it in a process of
/// its own.
///
/// With a store, takes what `kernels` has of a source, compiled by any process for any program, and leaves there what
/// it has not; `seconds` are those of the compiles that made it all.
CompiledProgram compile(const device::Nvrtc& nvrtc, const Program& program, const Target& target,
                        store::FileStore* kernels = nullptr, Products products = Products::cubin);

/// Looks up what compile() gives: all sources from `kernels`, without a compile; nothing where one is not there. Throws
/// Error(compile_failed) as compile() does for the arguments of a launch.
std::optional<CompiledProgram> find_compiled(const device::Nvrtc& nvrtc, const Program& program, const Target& target,
                                             store::FileStore& kernels, Products products = Products::cubin);

/// Identifies what compile() would produce: sources, launches, options and NVRTC's version. In a store the key of a
/// source is that of a program which has it alone and launches nothing.
std::string compile_digest(const device::Nvrtc& nvrtc, const Program& program, const Target& target,
                           Products products = Products::cubin);

/// Bytes that deserialise() turns back into an equal value. Ends in a checksum.
std::string serialise(const CompiledProgram& compiled);
/// Throws Error(parse_error) if `bytes` are damaged, cut off, of another version, or describe a program that cannot be
/// run: a launch of a source that is not there, a workspace address outside of the workspace, an empty block. Safe for
/// bytes from anywhere; the kernels in them are code all the same.
CompiledProgram deserialise(std::string_view bytes);

}  // namespace kiln::execution
