#include "cache_fixtures.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <limits>
#include <sstream>

#include "kiln/cache/pack.h"

namespace kiln::cache::test {

ScratchFolder::ScratchFolder(Where where) {
  const std::filesystem::path memory = "/dev/shm";
  const bool in_memory = where == Where::memory && access(memory.c_str(), W_OK | X_OK) == 0;
  std::string pattern = (in_memory ? memory : std::filesystem::temp_directory_path()) / "kiln-cache-XXXXXX";
  if (mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("no scratch folder");
  path_ = pattern;
  std::filesystem::permissions(path_, std::filesystem::perms::all);  // the unprivileged child works here too
}

ScratchFolder::~ScratchFolder() {
  std::error_code ignored;
  std::filesystem::permissions(path_, std::filesystem::perms::all, ignored);
  std::filesystem::remove_all(path_, ignored);
}

std::size_t Announcements::of_rows() const {
  return static_cast<std::size_t>(std::count_if(seen.begin(), seen.end(), [](const Announcement& a) {
    return a.what.find("damaged rows are left out, the rest is used") != std::string::npos;
  }));
}

std::string read_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream out;
  out << in.rdbuf();
  return out.str();
}

void write_file(const std::string& path, std::string_view bytes) {
  std::ofstream(path, std::ios::binary).write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}

DeviceEntry h200() {
  return {"NVIDIA H200 sm_90 132SM 141GB", "NVIDIA H200", 9, 0, 132, false};
}

DeviceEntry h100() {
  return {"NVIDIA H100 PCIe sm_90 114SM 80GB", "NVIDIA H100 PCIe", 9, 0, 114, false};
}

DeviceEntry rtx4090() {
  return {"NVIDIA RTX 4090 sm_89 128SM 24GB", "NVIDIA RTX 4090", 8, 9, 128, false};
}

DeviceEntry emulated() {
  return {"emulated H200 sm_90 132SM", "emulated H200", 9, 0, 132, true};
}

std::string request_line(int index) {
  return fmt::format(
      "conv_forward x=f16:32x64x{0}x56:nhwc w=f16:64x64x3x3:nhwc y=f16:32x64x{0}x56:nhwc pad=1,1,1,1 stride=1,1 "
      "dilation=1,1 groups=1 acc=f32 epilogue=bias+relu",
      index);
}

Record timed_record(std::string_view request, std::string_view config, double seconds) {
  Record r;
  r.request = request;
  r.device = h200().id;
  r.algorithm = "conv_implicit_gemm";
  r.algorithm_digest = "0123456789abcdef0123456789abcdef";
  r.config = config;
  r.outcome = outcome::timed;
  r.kind = TimeKind::measured;
  r.seconds = seconds;
  r.spread = seconds / 100;
  r.samples = {seconds, seconds * 1.01, seconds * 0.99};
  r.check = "max error 1.2e-4, bound 3.1e-3";
  r.workspace_bytes = 0;
  r.deterministic = true;
  r.resources = {64, 0, 32768};
  r.driver_version = "13000";
  r.nvrtc_version = "13.0";
  r.kiln_version = "0.1.0";
  r.source_digest = "fedcba9876543210fedcba9876543210";
  r.session = "session-1";
  r.created_ms = 1'790'000'000'123;
  return r;
}

Database with_devices(Database database) {
  for (const DeviceEntry& device : {h200(), h100(), rtx4090(), emulated()}) database.put_device(device);
  return database;
}

Database database_of(const std::vector<Record>& records) {
  Database database = with_devices(Database::in_memory());
  database.insert(records);
  return database;
}

std::string pack_text_of(const std::vector<Record>& records) {
  return print_pack(make_pack({h200(), h100(), rtx4090(), emulated()}, records), "0.1.0");
}

std::string error_of(ErrorCode code, const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& error) {
    EXPECT_EQ(to_string(error.code()), to_string(code)) << error.what();
    return error.what();
  }
  ADD_FAILURE() << "no Error was thrown";
  return {};
}

Record random_record(std::mt19937_64& random, const std::vector<DeviceEntry>& devices) {
  const auto pick = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
  const std::vector<std::string> texts = {"",           "plain",   "quote ' \" ;--", "tab\tand\nline\\end\r",
                                          "größe 例 🔥", "\x01\x7f"};
  const std::vector<double> times = {
      1e-6, 1.5e-5, 1.505e-5, 0.1, 1.0 / 3, least_pack_seconds, std::numeric_limits<double>::max()};
  const std::vector<std::string_view> outcomes = {outcome::timed, outcome::timed, outcome::rejected_early,
                                                  outcome::crashed, "invented_later"};
  const DeviceEntry& device = devices[static_cast<std::size_t>(pick(static_cast<int>(devices.size())))];
  Record r = timed_record(request_line(pick(3)), fmt::format("TILE={}", pick(4)),
                          times[static_cast<std::size_t>(pick(static_cast<int>(times.size())))]);
  r.device = device.id;
  r.algorithm = pick(2) == 0 ? "conv_direct" : "größe 'x'";
  r.algorithm_digest = fmt::format("d{}", pick(2));
  r.outcome = outcomes[static_cast<std::size_t>(pick(5))];
  r.kind = device.emulated ? TimeKind::modelled : TimeKind::measured;
  if (pick(5) == 0) {
    r.kind = TimeKind::predicted;
    r.outcome = outcome::predicted;
  }
  r.samples.assign(static_cast<std::size_t>(pick(3)), r.seconds);
  r.check = texts[static_cast<std::size_t>(pick(6))];
  r.error = texts[static_cast<std::size_t>(pick(6))];
  r.workspace_bytes = pick(2) == 0 ? 0 : std::numeric_limits<std::int64_t>::max() - pick(2);
  r.deterministic = pick(2) == 0;
  r.resources.registers = pick(3) - 1;
  r.created_ms = 1'790'000'000'000 + pick(3);
  r.session.clear();
  return r;
}

int in_child(const std::function<int()>& body, bool without_privileges) {
  const pid_t child = fork();
  if (child == 0) {
    constexpr unsigned nobody = 65534;
    if (without_privileges && geteuid() == 0 && (setgid(nobody) != 0 || setuid(nobody) != 0)) _exit(98);
    int status = 99;
    try {
      status = body();
    } catch (const std::exception& error) {
      fmt::print(stderr, "child: {}\n", error.what());
    }
    _exit(status);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace kiln::cache::test
