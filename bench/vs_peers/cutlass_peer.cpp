#include "cutlass_peer.h"

#include <fmt/format.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "kiln/base/digest.h"
#include "kiln/base/error.h"
#include "kiln/device/arch.h"
#include "kiln/device/launch.h"

namespace kiln::bench {
namespace {

using cuda_abi::CUdeviceptr;

// A kernel has at most 4 KB of parameters before 7.0, and 32 KB today; CUTLASS's are below 1 KB.
constexpr size_t parameter_room = 4096;

const std::filesystem::path peers = KILN_PEERS;
const std::filesystem::path headers = peers / "include";

device::CompileOptions options_for(const Target& target, execution::Products products) {
  constexpr auto features = device::ArchFeatures::portable;
  const auto [major, minor] = std::pair(target.arch.major, target.arch.minor);
  device::CompileOptions options;
  options.arch = products == execution::Products::ptx ? device::virtual_arch(major, minor, features)
                                                      : device::real_arch(major, minor, features);
  options.extra = {"--device-as-default-execution-space", "-w", "-I" KILN_PEER_SOURCES, "-I" + headers.string(),
                   "-I" + (headers / "cccl").string()};
  return options;
}

std::string content(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// Everything that shapes the kernel: scripts/setup leaves the versions of the headers in a file.
std::string digest_of(const device::Nvrtc& nvrtc, const std::string& text, const device::CompileOptions& options) {
  Digest digest;
  digest.add(text).add(content(peers / "versions"));
  for (const char* name :
       {"cutlass_arguments.h", "cutlass_common.cuh", "cutlass_convolution.cuh", "cutlass_product.cuh"}) {
    digest.add(content(std::filesystem::path(KILN_PEER_SOURCES) / name));
  }
  digest.add(options.arch);
  digest.add(fmt::format("nvrtc {}.{}", nvrtc.version().major, nvrtc.version().minor));
  return digest.hex();
}

execution::KernelImage compile(const device::Nvrtc& nvrtc, store::FileStore& kernels, const std::string& text,
                               const Target& target, execution::Products products) {
  const device::CompileOptions options = options_for(target, products);
  execution::CompiledProgram result;
  kernels.obtain(
      digest_of(nvrtc, text, options),
      [&](std::string_view bytes) {
        result = execution::deserialise(bytes);
        return true;
      },
      [&] {
        device::Compiled made = nvrtc.compile(text, "peer.cu", options);
        result.program.sources = {text};
        result.images = {{std::move(made.ptx), std::move(made.cubin), std::move(made.resources)}};
        return execution::serialise(result);
      });
  return std::move(result.images.at(0));
}

}  // namespace

std::optional<std::string> why_no_cutlass(const device::Nvrtc& nvrtc) {
  if (!std::filesystem::exists(headers / "cutlass/cutlass.h")) {
    return fmt::format("no CUTLASS in {}: scripts/setup --peers puts it there", headers.string());
  }
  if (nvrtc.version().major != 13) {
    return fmt::format(
        "CUTLASS is compiled with the headers of CUDA 13, but this is NVRTC {}: scripts/setup --nvrtc 13",
        nvrtc.version().major);
  }
  return std::nullopt;
}

std::string cutlass_ptx(const device::Nvrtc& nvrtc, store::FileStore& kernels, const Request& request,
                        const Target& target, const CutlassChoice& choice) {
  const CutlassSource source = cutlass_source(request, target.arch, choice);
  return compile(nvrtc, kernels, source.text, target, execution::Products::ptx).ptx;
}

CutlassPeer::CutlassPeer(std::shared_ptr<const device::ContextHandle> context, const device::Nvrtc& nvrtc,
                         store::FileStore& kernels, const Request& request, const Target& target,
                         const CutlassChoice& choice, execution::Products products)
    : context_(std::move(context)),
      source_(cutlass_source(request, target.arch, choice)),
      image_(compile(nvrtc, kernels, source_.text, target, products)),
      module_(context_, image_.loadable(context_->driver()), "CUTLASS " + choice.print()),
      kernel_(module_.function("peer")),
      made_(context_, sizeof(CutlassLaunch) + parameter_room) {
  if (choice.parallel) {
    adding_ = module_.function("peer_adding");
    slices_ = device::Buffer(context_, source_.slice_bytes);
  }
  make_parameters({});
  if (launch_.accepted == 0) throw Error(ErrorCode::unsupported, "CUTLASS's kernel refuses the extents of the request");
  if (launch_.shared_bytes > 48 << 10) kernel_.set_max_dynamic_shared(launch_.shared_bytes);
  if (choice.slices == 1 || choice.parallel) return;
  const size_t tiles = static_cast<size_t>(launch_.grid[0]) * static_cast<size_t>(launch_.grid[1]);
  semaphores_ = device::upload(context_, std::vector<int>(tiles));
  make_parameters({});
}

void CutlassPeer::make_parameters(const Arguments& arguments) {
  auto [a, b, c] = arguments.operands;
  float alpha = arguments.alpha, beta = arguments.beta;
  CUdeviceptr launch = made_.address(), parameters = launch + sizeof(CutlassLaunch), semaphores = semaphores_.address();
  CUdeviceptr slices = slices_.address();
  void* values[] = {source_.problem.data(), &a, &b, &c, &alpha, &beta, &semaphores, &slices, &parameters, &launch};
  {
    const device::Current current(*context_);
    device::launch(module_.function("peer_parameters"), {}, {}, 0, nullptr, values);
  }
  context_->synchronize();
  device::copy_to_host(*context_, &launch_, launch, sizeof launch_);
  const int bytes = launch_.parameter_bytes + launch_.adding_parameter_bytes;
  if (bytes > static_cast<int>(parameter_room)) {
    throw Error(ErrorCode::internal, fmt::format("{} bytes of parameters", bytes));
  }
  parameters_.resize(static_cast<size_t>(bytes));
  device::copy_to_host(*context_, parameters_.data(), parameters, parameters_.size());
  made_for_ = arguments;
}

CutlassPeer::Arguments CutlassPeer::arguments_of(checking::Checkable::Operands operands,
                                                 const RunValues& values) const {
  Arguments arguments{.alpha = values.alpha, .beta = values.beta};
  for (size_t i = 0; i < arguments.operands.size(); ++i) arguments.operands[i] = operands[source_.operands[i]];
  return arguments;
}

void CutlassPeer::prepare(checking::Checkable::Operands operands, const RunValues& values) {
  make_parameters(arguments_of(operands, values));
}

void CutlassPeer::run(cuda_abi::CUstream stream, checking::Checkable::Operands operands, const RunValues& values) {
  const Arguments arguments = arguments_of(operands, values);
  if (arguments != made_for_) make_parameters(arguments);
  void* parameters[] = {parameters_.data()};
  const auto extent = [](int number) { return static_cast<unsigned>(number); };
  const device::Current current(*context_);
  device::launch(kernel_, {extent(launch_.grid[0]), extent(launch_.grid[1]), extent(launch_.grid[2])},
                 {extent(launch_.threads)}, extent(launch_.shared_bytes), stream, parameters);
  if (!adding_) return;
  void* adding[] = {parameters_.data() + launch_.parameter_bytes};
  device::launch(*adding_, {extent(launch_.adding_grid[0]), extent(launch_.adding_grid[1])},
                 {extent(launch_.adding_threads[0]), extent(launch_.adding_threads[1])}, 0, stream, adding);
}

checking::Checkable CutlassPeer::checkable() {
  return {[this](cuda_abi::CUstream stream, checking::Checkable::Operands operands, const RunValues& values, int64_t,
                 CUdeviceptr) { run(stream, operands, values); },
          0};
}

std::optional<device::KernelResources> CutlassPeer::resources() const {
  for (const device::KernelResources& kernel : image_.resources) {
    if (kernel.name == "peer") return kernel;
  }
  return std::nullopt;
}

}  // namespace kiln::bench
