#include "model_trial.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <limits>
#include <optional>
#include <vector>

#include "fuzz_driver.h"
#include "kiln/base/error.h"
#include "kiln/graph/memory_plan.h"
#include "kiln/models/lower.h"
#include "kiln/prediction.h"
#include "schedule_check.h"

namespace kiln::fuzz {
namespace {

namespace fs = std::filesystem;

void write(const std::string& path, std::string_view bytes) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  check(file.good(), "the model can be written");
}

ModelOptions options_of(Choices& choices) {
  constexpr std::array layouts = {ModelLayout::automatic, ModelLayout::automatic, ModelLayout::channels_first,
                                  ModelLayout::channels_last};
  constexpr std::array<int64_t, 6> batches = {1, 2, 7, 1 << 24, int64_t{1} << 40, std::numeric_limits<int64_t>::max()};
  constexpr std::array dtypes = {DType::f16, DType::bf16, DType::f32, DType::f8e4m3};
  ModelOptions options;
  options.fuse = choices.holds(70);
  options.layout = choices.one_of(layouts);
  options.dynamic_batch = choices.holds(20);
  if (choices.holds(20)) options.batch = choices.one_of(batches);
  if (choices.holds(20)) options.dtype = choices.one_of(dtypes);
  return options;
}

/// Extents of inputs that the file leaves open: small ones, and some that nobody has memory for.
InputShapes shapes_of(const OnnxInputs& inputs, Choices& choices) {
  constexpr std::array<int64_t, 12> extents = {
      1, 2, 3, 4, 5, 7, 8, 0, -1, 1 << 24, int64_t{1} << 40, std::numeric_limits<int64_t>::max()};
  constexpr size_t usual = 7;
  InputShapes shapes;
  for (const OnnxInput& input : inputs.all()) {
    if (choices.holds(20)) continue;  // others may have extents of the same name
    std::vector<int64_t>& shape = shapes[input.name];
    for (const OnnxExtent& extent : input.extents) {
      const size_t which = choices.below(choices.holds(10) ? extents.size() : usual);
      shape.push_back(extent.fixed.value_or(extents[which]));
    }
    const bool is_odd = choices.holds(3);
    if (is_odd || !input.has_rank) shape.push_back(choices.one_of(extents));
  }
  return shapes;
}

/// As a model places what it computes in between.
void plan(const graph::Schedule& schedule) {
  std::vector<graph::Lifetime> lifetimes;
  for (const graph::Buffer& buffer : schedule.buffers) {
    if (buffer.home != graph::Buffer::Home::arena || !buffer.first_step) continue;
    lifetimes.push_back({buffer.bytes, *buffer.first_step, *buffer.last_step});
  }
  const graph::MemoryPlan placed = graph::plan_memory(lifetimes);
  for (size_t i = 0; i < lifetimes.size(); ++i) {
    check(placed.offsets[i] >= 0 && placed.offsets[i] <= placed.bytes - lifetimes[i].bytes, "each is inside the arena");
  }
  constexpr size_t enough = 8;  // a layer takes a millisecond
  const size_t asked = std::min(schedule.steps.size(), enough);
  for (size_t s = 0; s < asked; ++s) {
    (void)predicted_seconds(schedule.steps[s].request, std::numeric_limits<double>::infinity());
  }
}

bool is_readable(const std::string& path, const ModelOptions& options) {
  try {
    (void)read_onnx(path, {options.dtype, options.batch, options.shapes});
    return true;
  } catch (const Error&) {
    return false;
  }
}

std::string refused(const char* stage, const Error& error) {
  check(error.code() != ErrorCode::internal, error.what());
  return std::string(stage) + ": " + error.what();
}

}  // namespace

ModelTrial::ModelTrial() {
  folder_ = fs::temp_directory_path() / "kiln-models-XXXXXX";
  check(::mkdtemp(folder_.data()) != nullptr, "a temporary folder can be made");
  constexpr size_t bytes = 4096;
  write(folder_ + "/w.bin", std::string(bytes, '\0'));
  write(folder_ + "/holes.bin", "");
  constexpr uintmax_t terabyte = uintmax_t{1} << 40;
  std::error_code none;  // some file systems have no such files
  fs::resize_file(folder_ + "/holes.bin", terabyte, none);
  fs::create_symlink("/etc/passwd", folder_ + "/link.bin");
  fs::create_directory_symlink("/", folder_ + "/up");
  fs::create_directory(folder_ + "/folder");
  check(::mkfifo((folder_ + "/pipe").c_str(), S_IRUSR | S_IWUSR) == 0, "a pipe can be made");
}

ModelTrial::~ModelTrial() {
  std::error_code ignored;
  fs::remove_all(folder_, ignored);
}

std::string ModelTrial::run(std::string_view bytes, Choices& choices) const {
  const std::string path = folder_ + "/model.onnx";
  write(path, bytes);
  ModelOptions options = options_of(choices);
  try {
    const OnnxInputs inputs = OnnxFile(path).inputs(options.dtype);
    if (inputs.has_open_extents() || choices.holds(10)) options.shapes = shapes_of(inputs, choices);
  } catch (const Error& error) {
    return refused("file", error);
  }
  std::optional<models::Lowered> lowered;
  try {
    lowered = models::lower(path, options);
  } catch (const Error& error) {
    return refused(is_readable(path, options) ? "lowering" : "nodes", error);
  }
  const OnnxGraph& model = lowered->model;
  check(model.inputs.size() == model.graph.inputs().size(), "every input of the graph has a name");
  check(model.outputs.size() == model.graph.outputs().size(), "every output of the graph has a name");
  check_schedule(lowered->schedule);
  try {
    plan(lowered->schedule);
  } catch (const Error& error) {
    return refused("planning", error);
  }
  return model.uncovered.empty() ? "accepted" : "uncovered: " + model.uncovered.front().reason;
}

}  // namespace kiln::fuzz
