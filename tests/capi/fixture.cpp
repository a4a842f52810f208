#include "fixture.h"

#include <cmath>

#include "kernel_folder.h"

namespace kiln::capi {
namespace {

const std::string& kernel_store() {
  static const std::string folder = testing_support::kernel_folder();
  return folder;
}

}  // namespace

kiln_context_options CApi::options() {
  kiln_context_options options = kiln_context_options_default();
  options.cache = "off";
  options.kernel_store = kernel_store().c_str();
  return options;
}

ContextOptions CApi::cpp_options() {
  ContextOptions options;
  options.cache = "off";
  options.kernel_store = kernel_store();
  return options;
}

CApi::CApi() {
  const kiln_context_options given = options();
  EXPECT_EQ(kiln_context_create(&given, &context_), KILN_OK) << kiln_last_error();
}

CApi::~CApi() {
  for (const Block& block : blocks_) kiln_memory_destroy(block.memory);
  kiln_context_destroy(context_);
}

void* CApi::upload(const std::vector<float>& values) {
  kiln_memory* memory = nullptr;
  const size_t bytes = values.size() * sizeof(float);
  EXPECT_EQ(kiln_memory_create(context_, bytes, &memory), KILN_OK) << kiln_last_error();
  EXPECT_EQ(kiln_memory_upload(memory, values.data(), bytes), KILN_OK) << kiln_last_error();
  blocks_.push_back({memory, values.size()});
  return kiln_memory_data(memory);
}

std::vector<float> CApi::download(const void* data) const {
  for (const Block& block : blocks_) {
    if (kiln_memory_data(block.memory) != data) continue;
    std::vector<float> values(block.count);
    EXPECT_EQ(kiln_memory_download(block.memory, values.data(), values.size() * sizeof(float)), KILN_OK);
    return values;
  }
  ADD_FAILURE() << "no such memory";
  return {};
}

kiln_tensor CApi::tensor(const void* data, std::initializer_list<int64_t> extents, const char* layout) {
  kiln_tensor result = {};
  EXPECT_EQ(kiln_tensor_packed(&result, data, KILN_F32, static_cast<int32_t>(extents.size()), extents.begin(), layout),
            KILN_OK)
      << kiln_last_error();
  return result;
}

std::vector<float> wave(size_t count, float step) {
  std::vector<float> values(count);
  for (size_t i = 0; i < count; ++i) values[i] = std::sin(step * static_cast<float>(i + 1));
  return values;
}

}  // namespace kiln::capi
