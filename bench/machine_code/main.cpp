// bench_machine_code: the machine code of kernels on tensor cores.
//
// Method: each variant is made for each architecture by NVRTC in this process, and read by nvdisasm. The main loop is
// the innermost loop with the most tensor instructions; its instructions are counted as they stand in the code. No
// device is needed. Counts, no times.
//
//   bench_machine_code                                   the variants of the committed table, held to their limits
//   bench_machine_code --check FILE                      those of another table
//   bench_machine_code REQUEST ALGORITHM [CONFIG...]     any variant; --arch 80,120 chooses architectures
//   bench_machine_code REQUEST ALGORITHM --sample N      N legal ones drawn at random; the same ones each time
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <exception>
#include <fstream>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "code_limits.h"
#include "code_reader.h"
#include "kiln/base/environment.h"
#include "kiln/base/error.h"
#include "kiln/base/parallel.h"
#include "kiln/templates/catalogue.h"

namespace kiln::bench {
namespace {

struct Options {
  std::string check = KILN_CODE_LIMITS;
  std::string request, algorithm;
  std::vector<std::string> configs;
  size_t sample = 0;
  std::vector<int> archs{80, 86, 89, 90, 120};
  std::string nvdisasm, store;
  bool defaults_only = false, opcodes = false;
};

// One line of the output.
struct Row {
  CodeLimit variant;
  bool has_limits = false;
  std::string config, failure;
  KernelCode code;
};

std::string read_text(const std::string& path) {
  std::ifstream stream(path, std::ios::binary);
  if (!stream) throw Error(ErrorCode::io_error, fmt::format("cannot read {}", path));
  return std::string((std::istreambuf_iterator<char>(stream)), {});
}

// Rows of the variants that the command line names.
std::vector<Row> named_rows(const CodeReader& reader, const Options& options) {
  std::vector<Row> rows;
  Row row;
  row.variant.request = Request::parse(options.request);
  row.variant.algorithm = options.algorithm;
  for (const std::string& config : options.configs) {
    for (const int arch : options.archs) {
      row.variant.config = config;
      row.variant.arch = Arch::of(arch / 10, arch % 10);
      rows.push_back(row);
    }
  }
  for (const int arch : options.archs) {
    row.variant.arch = Arch::of(arch / 10, arch % 10);
    if (options.sample == 0) break;
    for (const Choice& choice :
         reader.sample(row.variant.request, row.variant.arch, row.variant.algorithm, options.sample)) {
      row.variant.config = choice.config.print();
      rows.push_back(row);
    }
  }
  return rows;
}

std::vector<Row> rows_of_table(const Options& options) {
  std::vector<Row> rows;
  for (const CodeLimit& limit : parse_code_limits(read_text(options.check))) {
    if (!options.defaults_only || limit.is_of_default()) rows.push_back({limit, true, {}, {}, {}});
  }
  return rows;
}

void read_code(CodeReader& reader, Row& row) {
  const CodeLimit& variant = row.variant;
  try {
    if (!reader.supports(variant.arch)) {
      row.failure = "this NVRTC does not compile for it";
      return;
    }
    const Choice choice = variant.is_of_default()
                              ? reader.default_choice(variant.request, variant.arch, variant.algorithm)
                              : Choice{variant.algorithm, Config::parse(variant.config)};
    row.config = choice.config.print();
    row.code = reader.code(variant.request, variant.arch, choice);
  } catch (const Error& error) {
    row.failure = error.what();
  }
}

// The most frequent first.
void print_opcodes(const CodeLoop& loop) {
  std::vector<std::pair<uint32_t, std::string>> counts;
  for (const auto& [opcode, count] : loop.opcodes) counts.emplace_back(count, opcode);
  std::stable_sort(counts.begin(), counts.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
  fmt::print("          ");
  for (const auto& [count, opcode] : counts) fmt::print(" {} {}", count, opcode);
  fmt::print("\n");
}

void print(const std::vector<Row>& rows, bool opcodes) {
  std::string request, variant;
  for (const Row& row : rows) {
    if (row.variant.request.key() != request) {
      fmt::print("\n{}\n", request = row.variant.request.key());
      variant.clear();
    }
    const std::string name = fmt::format("{} {}", row.variant.algorithm, row.config);
    if (name != variant) {
      fmt::print("  {}\n    {:>6} {:>9} {:>6} {:>12} {:>6} {:>8} {:>4} {:>6}\n", variant = name, "arch", "registers",
                 "spills", "instructions", "tensor", "per HMMA", "LDSM", "LDGSTS");
    }
    if (!row.failure.empty()) {
      fmt::print("    {:>6} {}\n", row.variant.arch.name(), row.failure);
      continue;
    }
    const CodeLoop& loop = row.code.main_loop;
    fmt::print("    {:>6} {:>9} {:>6} {:>12} {:>6} {:>8.2f} {:>4} {:>6}\n", row.variant.arch.name(), row.code.registers,
               row.code.local_instructions, loop.instructions(), loop.tensor_instructions(), loop.per_product(),
               loop.count("LDSM"), loop.count("LDGSTS"));
    if (opcodes) print_opcodes(loop);
  }
}

int run(const Options& options) {
  const Catalogue catalogue = make_catalogue(embedded_sources());
  CodeReaderOptions reading;
  reading.nvrtc = Environment::read().nvrtc;
  if (!options.nvdisasm.empty()) reading.nvdisasm = options.nvdisasm;
  reading.store_folder = options.store;
  CodeReader reader(catalogue, reading);
  fmt::print("{}\n", reader.description());

  std::vector<Row> rows = options.request.empty() ? rows_of_table(options) : named_rows(reader, options);
  for_each_index(rows.size(), [&](size_t i) { read_code(reader, rows[i]); });
  print(rows, options.opcodes);

  std::vector<std::string> faults;
  for (const Row& row : rows) {
    const bool was_read = row.failure.empty();
    std::string fault = was_read && row.has_limits ? fault_of(row.variant, row.code) : "";
    if (!was_read && reader.supports(row.variant.arch))
      fault = fmt::format("{} {}: {}", row.variant.algorithm, row.variant.config, row.failure);
    if (!fault.empty()) faults.push_back(std::move(fault));
  }
  const auto spilling =
      std::count_if(rows.begin(), rows.end(), [](const Row& row) { return row.code.local_instructions > 0; });
  fmt::print("\n{} rows, of which {} spill; wrong: {}\n", rows.size(), spilling, faults.size());
  for (const std::string& fault : faults) fmt::print("  {}\n", fault);
  return faults.empty() ? 0 : 1;
}

}  // namespace
}  // namespace kiln::bench

int main(int argc, char** argv) {
  CLI::App app("Registers, spills and the main loop of kernels on tensor cores, held to committed limits");
  kiln::bench::Options options;
  auto* const request =
      app.add_option("request", options.request, "one request in quotes; without it, those of the table");
  auto* const algorithm = app.add_option("algorithm", options.algorithm, "serves the request");
  app.add_option("configs", options.configs, "NAME=value,... or default");
  app.add_option("--arch", options.archs, "architectures, as 80 or 120, with commas between")
      ->delimiter(',')
      ->capture_default_str()
      ->needs(request);
  request->needs(algorithm);
  app.add_option("--sample", options.sample, "also so many legal configurations, drawn at random")->needs(request);
  app.add_option("--check", options.check, "table of limits")->excludes(request)->capture_default_str();
  app.add_flag("--defaults", options.defaults_only, "of the table only the default configurations, as the test")
      ->excludes(request);
  app.add_flag("--opcodes", options.opcodes, "also the main loop's instructions by opcode");
  app.add_option("--nvdisasm", options.nvdisasm, "the program; searched if not given");
  app.add_option("--store", options.store, "folder that keeps what is compiled and disassembled");
  CLI11_PARSE(app, argc, argv);
  if (options.configs.empty() && options.sample == 0) options.configs = {"default"};
  try {
    return kiln::bench::run(options);
  } catch (const std::exception& error) {
    fmt::print(stderr, "bench_machine_code: {}\n", error.what());
    return 2;
  }
}
