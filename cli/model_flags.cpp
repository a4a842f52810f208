#include "model_flags.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <string_view>
#include <vector>

#include "checks.h"
#include "command_line.h"
#include "kiln/base/error.h"

namespace kiln::cli {
namespace {

int64_t parse_batch(const std::string& whole, std::string_view text) {
  int64_t value = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || stop != text.data() + text.size() || value < 1) {
    throw Error(ErrorCode::invalid_argument, fmt::format("--batch {} is not a batch", whole),
                "give a number from 1 up, ? for a dynamic batch of the model's size, or ?N for one of up to N");
  }
  return value;
}

void parse_arithmetic(std::string_view words, ModelOptions& options) {
  for (size_t begin = 0, end = 0; end < words.size(); begin = end + 1) {
    end = std::min(words.find(',', begin), words.size());
    const std::string_view word = words.substr(begin, end - begin);
    if (word == "tf32") {
      options.arithmetic.tf32 = true;
    } else if (word == "fast") {
      options.arithmetic.fast = true;
    } else if (word == "deterministic") {
      options.arithmetic.deterministic = true;
    } else if (word == "batch_invariant") {
      options.batch_invariant = true;
    } else {
      throw Error(ErrorCode::invalid_argument, fmt::format("--arithmetic: '{}' is unknown", word),
                  "give tf32, fast, deterministic or batch_invariant, or several with commas between");
    }
  }
}

}  // namespace

void ModelFlags::add_to(Command command) {
  std::vector<std::string> storage;
  for (const DType each : all_dtypes) {
    if (DTypes::floating_or_fp8.holds(each)) storage.emplace_back(to_string(each));
  }
  command
      .add_option("--dtype", dtype,
                  fmt::format("storage of a model's floating-point numbers: {} (default: the model's own)",
                              fmt::join(storage, ", ")))
      .check(one_of(storage));
  command
      .add_option("--layout", layout,
                  "layout of values between a model's convolutions: nchw, nhwc, or auto (default: auto)")
      .check(one_of({"auto", "nchw", "nhwc"}));
  command.add_option("--batch", batch, "batch of a model: a number; ? or ?N for a dynamic batch (up to N)");
  command
      .add_option(
          "--shape", shapes,
          "[NAME=]1x3x224x224: extents of an input that a model leaves open; several with commas between, 224..448/32 "
          "for a range")
      .one_value();
  command.add_flag("--no-fuse", no_fuse,
                   "keep a call for each node of a model: nothing goes into filters and epilogues");
  command.add_option("--arithmetic", arithmetic,
                     "arithmetic that a model's calls permit or demand: tf32, fast, deterministic, batch_invariant, "
                     "with commas between");
}

bool ModelFlags::any() const {
  return !dtype.empty() || layout != "auto" || !batch.empty() || !shapes.empty() || no_fuse || !arithmetic.empty();
}

ModelOptions ModelFlags::options() const {
  ModelOptions options;
  if (!dtype.empty()) options.dtype = parse_dtype(dtype);  // its check has passed
  options.layout = parse_model_layout(layout).value();     // likewise
  options.fuse = !no_fuse;
  parse_arithmetic(arithmetic, options);
  std::string_view number = batch;
  options.dynamic_batch = number.starts_with('?');
  if (options.dynamic_batch) number.remove_prefix(1);
  if (!number.empty()) options.batch = parse_batch(batch, number);
  return options;
}

}  // namespace kiln::cli
