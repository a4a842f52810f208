// bench_vs_peers: Kiln's variants and kernels of CUTLASS, or of Triton for attention, on the same requests and the same
// emulated device, by the clock by machine code.
//
// Method: of each side the fastest variant is taken, by modelled times from a cold L2. Kiln's are those that `kiln
// tune` would try; CUTLASS's are all tiles that its generator lists for type and compute capability, with each number
// of slices: a second kernel adds those of convolutions. Kiln's variants with CUTLASS's tiles are timed besides, which
// its estimates may not prefer. Triton's are those that triton_attention.py made. The fastest of each side is run for
// fewer images, and its results are compared with the reference.
//
//   bench_vs_peers [--candidates N] [--tiles 128x128x32,256x128x32x3] [--slices 1,2] [--triton FOLDER] [--tie PART]
//                  [--verbose] REQUESTS
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <exception>
#include <fstream>
#include <iterator>
#include <optional>
#include <string>
#include <vector>

#include "comparison.h"
#include "cutlass_peer.h"
#include "kiln/base/environment.h"
#include "kiln/base/error.h"
#include "kiln/device/device.h"
#include "kiln/runtime/settings.h"

namespace kiln::bench {
namespace {

struct Options {
  std::string requests;
  size_t candidates = 16;
  std::vector<std::string> tiles;
  std::vector<int> slices{1};
  std::string triton;
  double tie = 0.2;
  bool verbose = false;
};

// Time, tensor units, registers, blocks of an SM, waves.
std::string timed_text(const Contender& contender) {
  return fmt::format("{:>10.2f} us {:>5.1f}% {:>5} {:>6} {:>6.2f}", contender.seconds * 1e6,
                     100 * contender.tensor_busy, contender.registers, contender.blocks, contender.waves);
}

void print_side(const char* side, const Contender& contender) {
  fmt::print("  {:<8} {} {:>7.2f} {:>8.2f} {:>6.2f}  {:<5} {}, {}\n", side, timed_text(contender),
             contender.instructions, contender.sectors, contender.wavefronts, contender.is_right ? "right" : "WRONG",
             contender.name, contender.bound);
  if (!contender.is_right) fmt::print("           {}\n", contender.verdict);
}

void print_timed(const std::vector<Contender>& contenders) {
  for (const Contender& contender : contenders) {
    fmt::print("    {} {}, {}\n", timed_text(contender), contender.name, contender.bound);
  }
}

std::string in_words(double ratio, double tie, const std::string& peer) {
  if (std::abs(std::log(ratio)) <= std::log1p(tie)) return "a tie";
  return ratio > 1 ? "Kiln leads" : peer + " leads";
}

// Ratios of all rows so far.
struct Mean {
  double logarithms = 0;
  int rows = 0;

  void add(double ratio) {
    logarithms += std::log(ratio);
    ++rows;
  }
  double value() const { return std::exp(logarithms / rows); }
};

// The fastest of each side; nothing where none serves.
struct Row {
  std::string peer;
  std::optional<Contender> theirs, ours, at_their_tiles;

  bool is_wrong() const {
    return std::ranges::any_of(std::array{&theirs, &ours, &at_their_tiles},
                               [](const auto* side) { return *side && !(*side)->is_right; });
  }
};

Row row_of_cutlass(Comparison& comparison, const Request& request, const Options& options) {
  std::vector<CutlassTile> tiles = cutlass_tiles(request, comparison.target().arch);
  if (!options.tiles.empty()) {
    std::erase_if(tiles, [&](const CutlassTile& tile) { return !is_among(tile, options.tiles); });
  }
  Row row{"CUTLASS", comparison.cutlass(request, tiles, options.slices), {}, {}};
  row.ours = comparison.kiln(request, options.candidates);
  row.at_their_tiles = comparison.kiln_with(request, tiles);
  return row;
}

Row row_of_triton(Comparison& comparison, const Request& request, const std::vector<TritonProgram>& programs,
                  const Options& options) {
  Row row{"Triton", comparison.triton(request, programs), {}, {}};
  if (!row.theirs) fmt::print("  no kernel of Triton: bench/vs_peers/triton_attention.py makes them for --triton\n");
  row.ours = comparison.kiln(request, options.candidates);
  return row;
}

void print_row(const Row& row) {
  if (row.theirs) print_side(row.peer.c_str(), *row.theirs);
  if (row.ours) print_side("Kiln", *row.ours);
  if (row.at_their_tiles) print_side("at tiles", *row.at_their_tiles);
}

int run(const Options& options) {
  const Environment environment = Environment::read();
  std::ifstream file(options.requests);
  if (!file) throw Error(ErrorCode::io_error, options.requests + " cannot be read");
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  const device::Device device(device::Driver::open({environment.driver.value_or("emulator")}), 0);
  const auto nvrtc = device::Nvrtc::open({environment.nvrtc});
  const std::vector<RequestLine> lines = parse_requests(text);
  const auto is_of_triton = [](const RequestLine& line) { return line.request.operation == "attention_forward"; };
  if (!std::ranges::all_of(lines, is_of_triton)) {
    if (const auto reason = why_no_cutlass(*nvrtc)) throw Error(ErrorCode::unsupported, *reason);
  }
  const std::vector<TritonProgram> programs = triton_programs(options.triton);
  const auto kept = kernel_store(std::nullopt, environment);
  store::FileStore kernels(kept.value_or(store::StoreOptions{}));
  Comparison comparison(device::ContextHandle::acquire(device), nvrtc, kernels);
  fmt::print("{}, NVRTC {}.{}; all times modelled; leads up to {:.0f}% are ties\n", device.info().name,
             nvrtc->version().major, nvrtc->version().minor, 100 * options.tie);
  fmt::print("  {:<8} {:>13} {:>6} {:>5} {:>6} {:>6} {:>7} {:>8} {:>6}\n", "", "time", "tensor", "regs", "blocks",
             "waves", "instr.", "sectors", "passes");
  Mean of_candidates, of_all;
  int wrong = 0;
  for (const RequestLine& line : lines) {
    fmt::print("{}\n", line.request.key());
    const Row row = is_of_triton(line) ? row_of_triton(comparison, line.request, programs, options)
                                       : row_of_cutlass(comparison, line.request, options);
    const std::vector<Contender> timed = comparison.take_timed();
    if (options.verbose) print_timed(timed);
    print_row(row);
    for (const std::string& remark : comparison.take_remarks()) fmt::print("  {}\n", remark);
    wrong += row.is_wrong() ? 1 : 0;
    if (!row.theirs || !row.ours) continue;
    const double ratio = row.theirs->seconds / row.ours->seconds;
    fmt::print("  {:.2f}x of {}'s speed, modelled: {}", ratio, row.peer, in_words(ratio, options.tie, row.peer));
    of_candidates.add(ratio);
    if (row.peer == "CUTLASS") {
      const double best =
          row.at_their_tiles ? std::min(row.ours->seconds, row.at_their_tiles->seconds) : row.ours->seconds;
      const double best_ratio = row.theirs->seconds / best;
      fmt::print("; {:.2f}x with CUTLASS's tiles tried too: {}", best_ratio,
                 in_words(best_ratio, options.tie, row.peer));
      of_all.add(best_ratio);
    }
    fmt::print("\n");
    std::fflush(stdout);
  }
  if (of_candidates.rows > 0) {
    fmt::print("{} rows: geometric mean {:.2f}x", of_candidates.rows, of_candidates.value());
    if (of_all.rows > 0) fmt::print(", {:.2f}x with CUTLASS's tiles tried too", of_all.value());
    fmt::print(", modelled\n");
  }
  return wrong == 0 ? 0 : 1;
}

}  // namespace
}  // namespace kiln::bench

int main(int argc, char** argv) {
  CLI::App app("Kiln and CUTLASS, or Triton, on the same requests and the same emulated device");
  kiln::bench::Options options;
  app.add_option("requests", options.requests, "file of requests")->required();
  app.add_option("--candidates", options.candidates, "most variants of Kiln for a request")->capture_default_str();
  app.add_option("--tiles", options.tiles, "CUTLASS's tiles, MxNxK or MxNxKxSTAGES; all of its list unless named")
      ->delimiter(',');
  app.add_option("--slices", options.slices, "numbers of slices of CUTLASS's sums")->delimiter(',');
  app.add_option("--triton", options.triton, "folder of Triton's kernels for attention, by triton_attention.py");
  app.add_option("--tie", options.tie, "ratios of times within this part of 1 are ties")->capture_default_str();
  app.add_flag("--verbose", options.verbose, "print all variants that have a time, too");
  CLI11_PARSE(app, argc, argv);
  try {
    return kiln::bench::run(options);
  } catch (const std::exception& error) {
    fmt::print(stderr, "bench_vs_peers: {}\n", error.what());
    return 1;
  }
}
