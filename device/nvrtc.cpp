#include "kiln/device/nvrtc.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "kiln/device/arch.h"
#include "kiln/device/image.h"
#include "nvrtc_table.h"

namespace kiln::device {
namespace {

using cuda_abi::nvrtcProgram;
using cuda_abi::nvrtcResult;

/// The first NVRTC that knows the architecture-specific sets ("sm_90a").
constexpr NvrtcVersion first_with_specific_archs = {12, 0};

/// Code of the error that a compile ends in.
ErrorCode code_of_failed_compile(nvrtcResult result) {
  if (result == cuda_abi::NVRTC_ERROR_INVALID_OPTION) return ErrorCode::invalid_argument;
  if (result == cuda_abi::NVRTC_ERROR_OUT_OF_MEMORY) return ErrorCode::out_of_memory;  // it may compile later
  return ErrorCode::compile_failed;
}

/// One NVRTC program, destroyed at the end of its scope.
class Program {
 public:
  Program(const detail::NvrtcEntries& calls, const std::string& source, const std::string& name) : calls_(calls) {
    check(calls_.nvrtcCreateProgram(&program_, source.c_str(), name.c_str(), 0, nullptr, nullptr), "nvrtcCreateProgram",
          name);
  }
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;
  ~Program() { calls_.nvrtcDestroyProgram(&program_); }

  nvrtcProgram get() const { return program_; }

  /// One of the program's products, which NVRTC hands out as a size and a copy.
  std::string product(nvrtcResult (*size)(nvrtcProgram, size_t*), nvrtcResult (*copy)(nvrtcProgram, char*),
                      const char* call) const {
    size_t bytes = 0;
    check(size(program_, &bytes), call, "the compiled program");
    std::string text(bytes, '\0');
    if (bytes > 0) check(copy(program_, text.data()), call, "the compiled program");
    return text;
  }

  /// As product(), for text: without the terminating zero.
  std::string text(nvrtcResult (*size)(nvrtcProgram, size_t*), nvrtcResult (*copy)(nvrtcProgram, char*),
                   const char* call) const {
    std::string result = product(size, copy, call);
    while (!result.empty() && result.back() == '\0') result.pop_back();
    return result;
  }

 private:
  void check(nvrtcResult result, const char* call, const std::string& object) const {
    if (result == cuda_abi::NVRTC_SUCCESS) return;
    const ErrorCode code =
        result == cuda_abi::NVRTC_ERROR_OUT_OF_MEMORY ? ErrorCode::out_of_memory : ErrorCode::internal;
    throw Error(code, fmt::format("{} of {} failed: {}", call, object, calls_.nvrtcGetErrorString(result)));
  }

  const detail::NvrtcEntries& calls_;
  nvrtcProgram program_ = nullptr;
};

std::string version_text(NvrtcVersion version) {
  return fmt::format("{}.{}", version.major, version.minor);
}

/// The first driver branch of a major version of CUDA, from NVIDIA's table of minor version compatibility.
int first_driver_branch(int cuda_major) {
  switch (cuda_major) {
    case 11:
      return 450;
    case 12:
      return 525;
    default:
      return 580;
  }
}

}  // namespace

std::string Compiled::image(const Driver& driver) const {
  return loadable_image(driver, ptx, cubin);
}

Nvrtc::Nvrtc(std::unique_ptr<const Table> table, std::string path) : table_(std::move(table)), path_(std::move(path)) {
  table_->nvrtcVersion(&version_.major, &version_.minor);
  int count = 0;
  table_->nvrtcGetNumSupportedArchs(&count);
  archs_.resize(static_cast<size_t>(std::max(count, 0)));
  if (count > 0) table_->nvrtcGetSupportedArchs(archs_.data());
  std::sort(archs_.begin(), archs_.end());
}

Nvrtc::~Nvrtc() = default;

bool Nvrtc::supports(int cc_major, int cc_minor) const {
  return std::binary_search(archs_.begin(), archs_.end(), 10 * cc_major + cc_minor);
}

std::vector<std::string> Nvrtc::options(const CompileOptions& options) const {
  std::vector<std::string> list = {"--gpu-architecture=" + options.arch, "--std=" + options.standard};
  if (is_real_arch(options.arch)) list.emplace_back("--ptxas-options=-v");
  list.insert(list.end(), options.extra.begin(), options.extra.end());
  return list;
}

void Nvrtc::require_arch(const std::string& arch) const {
  const bool known = std::binary_search(archs_.begin(), archs_.end(), arch_number(arch));
  const bool specific = arch.back() == 'a' || arch.back() == 'f';
  if (known && !(specific && version_ < first_with_specific_archs)) return;
  throw Error(ErrorCode::unsupported,
              fmt::format("NVRTC {} ({}) cannot compile for {}: it knows {}{}", version_text(version_), path_, arch,
                          fmt::join(archs_, ", "), version_ < first_with_specific_archs ? ", none with suffix" : ""),
              "install a newer NVRTC, or an older one for an old GPU");
}

Compiled Nvrtc::compile(const std::string& source, const std::string& name, const CompileOptions& options) const {
  require_arch(options.arch);
  const auto start = std::chrono::steady_clock::now();
  const Program program(*table_, source, name);
  const std::vector<std::string> list = this->options(options);
  std::vector<const char*> arguments;
  arguments.reserve(list.size());
  for (const std::string& option : list) arguments.push_back(option.c_str());
  const nvrtcResult result =
      table_->nvrtcCompileProgram(program.get(), static_cast<int>(arguments.size()), arguments.data());

  Compiled compiled;
  compiled.log = program.text(table_->nvrtcGetProgramLogSize, table_->nvrtcGetProgramLog, "nvrtcGetProgramLog");
  if (result != cuda_abi::NVRTC_SUCCESS) {
    throw Error(code_of_failed_compile(result),
                fmt::format("NVRTC {} cannot compile {} with {}: {}\n{}", version_text(version_), name,
                            fmt::join(list, " "), table_->nvrtcGetErrorString(result), compiled.log));
  }
  compiled.ptx = program.text(table_->nvrtcGetPTXSize, table_->nvrtcGetPTX, "nvrtcGetPTX");
  if (is_real_arch(options.arch)) {
    compiled.cubin = program.product(table_->nvrtcGetCUBINSize, table_->nvrtcGetCUBIN, "nvrtcGetCUBIN");
    compiled.resources = parse_resource_log(compiled.log);
  }
  const auto duration = std::chrono::steady_clock::now() - start;
  compiled.seconds = std::chrono::duration<double>(duration).count();
  compiles_ += 1;
  nanoseconds_ += static_cast<uint64_t>(std::chrono::nanoseconds(duration).count());
  return compiled;
}

NvrtcWork Nvrtc::work() const {
  constexpr double nanosecond = 1e-9;
  return {compiles_, nanosecond * static_cast<double>(nanoseconds_.load())};
}

void require_driver_for(const Nvrtc& nvrtc, const Driver& driver) {
  const NvrtcVersion version = nvrtc.version();
  if (driver.is_emulated() || driver.version() / 1000 >= version.major) return;
  throw Error(
      ErrorCode::unsupported,
      fmt::format("the driver is older than NVRTC: {} supports CUDA {}, but {} is NVRTC {}", driver.description(),
                  cuda_version_text(driver.version()), nvrtc.path(), version_text(version)),
      fmt::format("install an NVIDIA driver of branch {} or later, or NVRTC {} (scripts/setup --nvrtc {}) and name "
                  "it by KILN_NVRTC",
                  first_driver_branch(version.major), driver.version() / 1000, driver.version() / 1000));
}

}  // namespace kiln::device
