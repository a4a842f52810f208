// How well the time model of timing/ ranks and times kernels that others have measured: docs/time-model.md.
//
// Method: rows of each table, spread evenly over its measured times, are compiled by NVRTC, disassembled, and timed by
// the model. Nothing is fitted here. Rows that were measured at another clock than their table (see tables.h) are
// judged with and without.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdio>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "kiln/base/digest.h"
#include "kiln/base/environment.h"
#include "kiln/base/error.h"
#include "kiln/base/parallel.h"
#include "kiln/device/nvrtc.h"
#include "kiln/store/file_store.h"
#include "kiln/timing/accuracy.h"
#include "kiln/timing/disassembler.h"
#include "kiln/timing/time_model.h"
#include "launches.h"
#include "statistics.h"
#include "tables.h"
#include "variants.h"

namespace {

struct Options {
  std::string folder;
  std::string launches;
  std::string variants, times;
  std::vector<std::string> tables;
  size_t rows = 48;
  size_t worst = 6;
  uint64_t instructions = 3'000'000;
  std::string store;
  std::string nvdisasm;
  std::string card;
  std::string csv;
  bool every = false, unchanged = false;
};

struct Timed {
  kiln::bench::Row row;
  kiln::timing::ModelledTime time;
  std::string failure;

  double ratio() const { return time.seconds * 1e3 / row.milliseconds; }
};

// Time of the processor that this thread has used.
uint64_t thread_nanoseconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(now.tv_nsec);
}

class Bench {
 public:
  explicit Bench(const Options& options)
      : options_(options),
        nvrtc_(kiln::device::Nvrtc::open({kiln::Environment::read().nvrtc})),
        disassembler_(disassembler_options(options)) {
    if (!options.store.empty()) cubins_.emplace(store_options(options, "cubins"));
    if (options.csv.empty()) return;
    csv_.open(options.csv);
    if (!(csv_ << "table,card,raised,measured_ms,modelled_ms\n"))
      throw kiln::Error(kiln::ErrorCode::io_error, fmt::format("cannot write {}", options.csv));
  }

  void judge(const kiln::bench::Table& table) {
    const std::vector<kiln::bench::Row> rows = sample(kiln::bench::read_rows(table, options_.folder));
    std::vector<Timed> timed(rows.size());
    issued_ = 0;
    nanoseconds_ = 0;
    kiln::for_each_index(rows.size(), [&](size_t i) {
      timed[i].row = rows[i];
      try {
        timed[i].time = time(table, rows[i]);
      } catch (const kiln::Error& error) {
        timed[i].failure = error.what();
      }
    });
    print(table, timed);
    if (csv_.is_open()) write(table, timed);
  }

  // The fastest launch by the model stands for a row that has several, such as tiles that its author tried.
  void judge(const kiln::bench::LaunchTable& launches) {
    std::vector<Timed> all(launches.launches.size());
    issued_ = 0;
    nanoseconds_ = 0;
    kiln::for_each_index(all.size(), [&](size_t i) {
      const kiln::bench::MeasuredLaunch& one = launches.launches[i];
      all[i].row.label = one.row;
      all[i].row.milliseconds = one.milliseconds;
      try {
        all[i].time = time(one);
      } catch (const kiln::Error& error) {
        all[i].failure = error.what();
      }
    });
    std::vector<Timed> timed;
    for (Timed& one : all) {
      const auto same =
          std::find_if(timed.begin(), timed.end(), [&](const Timed& t) { return t.row.label == one.row.label; });
      if (same == timed.end()) {
        timed.push_back(std::move(one));
      } else if (one.failure.empty() && (!same->failure.empty() || one.time.seconds < same->time.seconds)) {
        *same = std::move(one);
      }
    }
    kiln::bench::Table table;
    table.name = launches.name;
    table.card = launches.launches.front().card.name;
    print(table, timed);
    if (csv_.is_open()) write(table, timed);
  }

 private:
  static kiln::store::StoreOptions store_options(const Options& options, const std::string& name) {
    kiln::store::StoreOptions where;
    where.folder = options.store + "/" + name;
    where.limit_bytes = uint64_t{4} << 30;
    return where;
  }

  static kiln::timing::DisassemblerOptions disassembler_options(const Options& options) {
    kiln::timing::DisassemblerOptions result;
    if (!options.nvdisasm.empty()) result.program = options.nvdisasm;
    if (!options.store.empty()) result.store_folder = options.store + "/disassembly";
    return result;
  }

  // Rows in the order of their times, evenly spread.
  std::vector<kiln::bench::Row> sample(std::vector<kiln::bench::Row> rows) const {
    std::stable_sort(rows.begin(), rows.end(),
                     [](const auto& a, const auto& b) { return a.milliseconds < b.milliseconds; });
    if (options_.rows == 0 || options_.rows >= rows.size()) return rows;
    std::vector<kiln::bench::Row> taken;
    for (size_t i = 0; i < options_.rows; ++i)
      taken.push_back(rows[i * (rows.size() - 1) / std::max<size_t>(1, options_.rows - 1)]);
    return taken;
  }

  std::string compile(const kiln::bench::Table& table, const std::string& source) {
    kiln::device::CompileOptions options;
    options.arch = table.arch;
    const auto make = [&] { return nvrtc_->compile(source, table.source, options).cubin; };
    if (!cubins_) return make();
    std::string cubin;
    const auto version = nvrtc_->version();
    const std::string key =
        kiln::Digest().add(source).add(table.arch).add(fmt::format("{}.{}", version.major, version.minor)).hex();
    cubins_->obtain(
        key, [&](std::string_view stored) { return cubin = stored, true; }, [&] { return cubin = make(); });
    return cubin;
  }

  kiln::timing::ModelledTime time(const kiln::bench::Table& table, const kiln::bench::Row& row) {
    const std::string cubin = compile(table, kiln::bench::source_of(table, row, options_.folder));
    return time(cubin, table.kernel, table.launch(row), card(table));
  }

  kiln::timing::ModelledTime time(const kiln::bench::MeasuredLaunch& one) {
    std::ifstream file(one.cubin, std::ios::binary);
    std::ostringstream cubin;
    cubin << file.rdbuf();
    if (!file) throw kiln::Error(kiln::ErrorCode::io_error, fmt::format("cannot read {}", one.cubin));
    const bool other = !options_.card.empty();
    return time(cubin.str(), one.kernel, one.launch,
                other ? kiln::timing::at_clock(kiln::timing::read_card(options_.card), one.card.clock_mhz) : one.card);
  }

  kiln::timing::ModelledTime time(const std::string& cubin, const std::string& name, const kiln::timing::Launch& launch,
                                  const kiln::timing::Card& card) {
    const auto kernels = kiln::timing::read_cubin(cubin);
    const auto kernel = std::find_if(kernels.begin(), kernels.end(),
                                     [&](const auto& facts) { return facts.name.find(name) != std::string::npos; });
    if (kernel == kernels.end())
      throw kiln::Error(kiln::ErrorCode::invalid_argument, fmt::format("the cubin has no kernel {}", name));
    const auto sass = kiln::timing::parse_sass(disassembler_.text_of(cubin), kernel->name);
    kiln::timing::ModelOptions options;
    options.instructions = options_.instructions;
    const uint64_t begin = thread_nanoseconds();
    auto result = kiln::timing::model_time(sass, *kernel, launch, card, options);
    nanoseconds_ += thread_nanoseconds() - begin;
    issued_ += result.replayed.issued;
    return result;
  }

  kiln::timing::Card card(const kiln::bench::Table& table) const {
    kiln::timing::Card card =
        options_.card.empty() ? kiln::timing::find_card(table.card) : kiln::timing::read_card(options_.card);
    return kiln::timing::at_clock(std::move(card), table.clock_mhz);
  }

  // For timing/cards/judged.txt.
  static void print_line(const kiln::bench::Table& table, const std::vector<const Timed*>& rows) {
    if (rows.size() < 2 || table.card.find(' ') != std::string::npos) return;  // " with the counts of"
    const auto result = kiln::bench::judge(pairs_of(rows));
    const std::time_t now = std::time(nullptr);
    std::tm utc{};
    gmtime_r(&now, &utc);
    const kiln::timing::Judgement line{
        table.card,
        kiln::timing::model_version,
        fmt::format("{:04}-{:02}-{:02}", utc.tm_year + 1900, utc.tm_mon + 1, utc.tm_mday),
        table.name,
        static_cast<int>(rows.size()),
        result.spearman,
        result.mean,
        result.spread};
    fmt::print("  judged: {}\n", line.print());
  }

  static std::vector<kiln::bench::Pair> pairs_of(const std::vector<const Timed*>& rows) {
    std::vector<kiln::bench::Pair> pairs;
    for (const Timed* row : rows) pairs.push_back({row->row.milliseconds, row->time.seconds * 1e3});
    return pairs;
  }

  static void print_judgement(const char* which, const std::vector<const Timed*>& rows) {
    if (rows.size() < 2) return;
    const auto result = kiln::bench::judge(pairs_of(rows));
    fmt::print(
        "  {:<22} {:>4} rows: Spearman {:.3f}, modelled/measured mean {:.2f} spread {:.2f}, favourite {:.0f}%, best of "
        "16 {:.0f}%\n",
        which, rows.size(), result.spearman, result.mean, result.spread, 100 * result.favourite,
        100 * result.best_of_16);
  }

  // For plot.py.
  void write(const kiln::bench::Table& table, const std::vector<Timed>& timed) {
    for (const Timed& row : timed) {
      if (!row.failure.empty()) continue;
      csv_ << fmt::format("{},{},{},{:.6g},{:.6g}\n", table.name, table.card, row.row.raised ? 1 : 0,
                          row.row.milliseconds, row.time.seconds * 1e3);
    }
    if (!csv_.flush()) throw kiln::Error(kiln::ErrorCode::io_error, fmt::format("cannot write {}", options_.csv));
  }

  void print(const kiln::bench::Table& table, const std::vector<Timed>& timed) const {
    std::vector<const Timed*> all, even, usual;
    for (const Timed& row : timed) {
      if (!row.failure.empty()) {
        fmt::print("  not timed: {}: {}\n", kiln::bench::to_string(row.row), row.failure);
        continue;
      }
      all.push_back(&row);
      if (!row.row.raised) usual.push_back(&row);
    }
    fmt::print("{} on {}:\n", table.name, table.card);
    print_judgement("all", all);
    if (usual.size() != all.size()) print_judgement("without raised clock", usual);
    for (size_t i = 1; i < usual.size(); i += 2) even.push_back(usual[i]);
    print_judgement("every other row", even);
    if (options_.card.empty()) print_line(table, all);
    std::sort(all.begin(), all.end(), [](const Timed* a, const Timed* b) {
      return std::abs(std::log(a->ratio())) > std::abs(std::log(b->ratio()));
    });
    for (size_t i = 0; i < (options_.every ? all.size() : std::min(options_.worst, all.size())); ++i) {
      const Timed& row = *all[i];
      fmt::print(
          "    {:.2f}: measured {:.3f} ms, modelled {:.3f}; {}{}; {} KB of code, {} blocks an SM ({}), {:.1f} waves; "
          "{}; "
          "{:.0f}% of misses from DRAM\n",
          row.ratio(), row.row.milliseconds, row.time.seconds * 1e3, kiln::bench::to_string(row.row),
          row.row.raised ? " (raised clock)" : "", row.time.code_bytes / 1024, row.time.occupancy.blocks,
          row.time.occupancy.limit, row.time.waves, row.time.bound, 100 * row.time.dram_share);
      if (table.flop > 0) {
        for (const auto& [unit, busy] : row.time.units) {
          if (busy >= 0.05) fmt::print("      {} {:.0f}%", unit, 100 * busy);
        }
        fmt::print("\n      published {:.0f} TFLOP/s, modelled {:.0f}\n", table.flop / row.row.milliseconds * 1e-9,
                   table.flop / row.time.seconds * 1e-12);
      }
      if (row.time.path_share < 1) fmt::print("      {:.1f}% of each path replayed\n", 100 * row.time.path_share);
      for (const std::string& name : row.time.unclassified) fmt::print("      unclassified: {}\n", name);
      for (const auto& [name, count] : row.time.report.unknown_opcodes)
        fmt::print("      not executed: {} x{}\n", name, count);
      if (row.time.report.unknown_addresses != 0)
        fmt::print("      unknown addresses: {}\n", row.time.report.unknown_addresses);
    }
    fmt::print("  {:.1f} million instructions of the longer replays; {:.1f} million a second of all work and thread\n",
               static_cast<double>(issued_) / 1e6,
               static_cast<double>(issued_) * 1e3 / static_cast<double>(std::max<uint64_t>(1, nanoseconds_)));
    std::fflush(stdout);
  }

  Options options_;
  std::shared_ptr<const kiln::device::Nvrtc> nvrtc_;
  kiln::timing::Disassembler disassembler_;
  std::optional<kiln::store::FileStore> cubins_;
  std::ofstream csv_;
  std::atomic<uint64_t> issued_{0}, nanoseconds_{0};
};

int run(const Options& options) {
  if (!options.variants.empty())
    kiln::bench::judge_variants({options.variants, options.times, options.every, options.unchanged});
  if (options.folder.empty() && options.launches.empty()) return 0;
  Bench bench(options);
  if (!options.launches.empty()) {
    for (const kiln::bench::LaunchTable& table : kiln::bench::read_launches(options.launches)) {
      const auto& wanted = options.tables;
      if (wanted.empty() || std::find(wanted.begin(), wanted.end(), table.name) != wanted.end()) bench.judge(table);
    }
  }
  if (options.folder.empty()) return 0;
  for (const kiln::bench::Table& table : kiln::bench::tables()) {
    const bool wanted = options.tables.empty() ? std::filesystem::exists(options.folder + "/" + table.file)
                                               : std::find(options.tables.begin(), options.tables.end(), table.name) !=
                                                     options.tables.end();
    if (wanted) bench.judge(table);
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Judges modelled times by tables of measured ones");
  Options options;
  app.add_option("folder", options.folder, "holds the tables and the sources of their kernels");
  app.add_option("--launches", options.launches, "file of compiled kernels and their times, of tensor_kernels.py");
  CLI::Option* times = app.add_option("--times", options.times, "file that keeps the modelled times of --variants");
  app.add_option(
         "--variants", options.variants,
         "table of Kiln's variants that a GPU has measured, of bench/measured/; modelled by KILN_DRIVER's device")
      ->needs(times);
  app.add_flag("--unchanged", options.unchanged, "of --variants, only those whose source is the one that was measured");
  app.add_option(
      "--table", options.tables,
      "convolution, convolution_l1, dedispersion or ladder, or one of --launches; if not given, all that are "
      "there");
  app.add_option("--rows", options.rows, "of each table, spread over the measured times; 0 for all")
      ->capture_default_str();
  app.add_option("--worst", options.worst, "rows to print")->capture_default_str();
  app.add_flag("--every", options.every, "print all rows");
  app.add_option("--csv", options.csv, "file that gets measured and modelled times, for plot.py");
  app.add_option("--instructions", options.instructions, "to replay of each row")->capture_default_str();
  app.add_option("--card", options.card, "file of a card, in place of the built-in one");
  app.add_option("--store", options.store, "folder that keeps compiled and disassembled kernels");
  app.add_option("--nvdisasm", options.nvdisasm, "the program; searched if not given");
  CLI11_PARSE(app, argc, argv);
  if (options.folder.empty() && options.launches.empty() && options.variants.empty()) {
    fmt::print(stderr,
               "bench_time_model: nothing to judge: give a folder of tables, --launches FILE or --variants TABLE\n");
    return 2;
  }
  try {
    return run(options);
  } catch (const kiln::Error& error) {
    fmt::print(stderr, "bench_time_model: {}\n", error.what());
    return 1;
  }
}
