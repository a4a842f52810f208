// What an application asks for through the C++ API is what `kiln tune model.onnx` tuned: the same request, to the
// letter.
#include <gmock/gmock.h>

#include <algorithm>
#include <cstddef>
#include <nlohmann/json.hpp>
#include <set>
#include <vector>

#include "kiln/frontends/onnx.h"
// After the frontend: its MemoryOrder has enumerators of the names that the API gives its layouts.
#include "kiln/base/error.h"
#include "kiln/conv.h"
#include "kiln/execution/bundle.h"
#include "kiln/gemm.h"
#include "kiln/generator/operations/conv_forward.h"
#include "kiln/generator/operations/gemm.h"
#include "kiln/memory.h"
#include "kiln/norm.h"
#include "kiln/pool.h"
#include "kiln/softmax.h"
#include "kiln/tensor_ops.h"
#include "program.h"

namespace kiln::cli {
namespace {

using Keys = std::set<std::string>;

std::string model_path(const std::string& name) {
  return std::string(KILN_SOURCE_DIR) + "/examples/models/" + name + ".onnx";
}

// An engine that runs layers with tensors of its own and knows nothing of requests; only their numbers come from one.
class Engine {
 public:
  explicit Engine(const ContextOptions& options) : context_(options) {}

  Context& context() { return context_; }

  void run(const Request& layer) {
    tensors_.clear();
    for (const Operand& operand : layer.operands) tensors_.push_back(tensor(operand.spec));
    if (layer.operation == "conv_forward") run_conv(ConvForward::of(layer));
    if (layer.operation == "pool_forward") run_pool(PoolForward::of(layer));
    if (layer.operation == "softmax_forward") run_softmax(SoftmaxForward::of(layer));
    if (layer.operation == "gemm") run_gemm(Gemm::of(layer));
    if (layer.operation == "tensor_transform") tensor_transform(context_, tensors_[0], tensors_[1]);
  }

 private:
  Tensor tensor(const TensorSpec& spec) {
    memory_.emplace_back(context_, static_cast<size_t>(spec.span() * size_of(spec.dtype)));
    memory_.back().upload(
        std::vector<std::byte>(memory_.back().size()));  // kernels do not read what nobody has written
    const void* data = memory_.back().data();
    const auto& e = spec.extents;
    if (e.size() == 1) return {data, spec.dtype, {e[0]}, contiguous};
    if (e.size() == 2 && spec.is_packed("nc")) return {data, spec.dtype, {e[0], e[1]}, nc};
    if (!spec.is_packed("nchw")) return {data, spec.dtype, e, spec.strides};
    return {data, spec.dtype, {e[0], e[1], e[2], e[3]}, nchw};
  }

  void run_conv(const ConvForward& conv) {
    ConvOptions options;
    options.pad = {conv.pad_begin[0], conv.pad_begin[1], conv.pad_end[0], conv.pad_end[1]};
    options.stride = {conv.stride[0], conv.stride[1]};
    options.dilation = {conv.dilation[0], conv.dilation[1]};
    options.groups = conv.groups;
    size_t next = 3;  // after x, w and y
    for (const EpilogueStage stage : conv.epilogue) {
      if (stage == EpilogueStage::bias) options.epilogue = options.epilogue + bias(tensors_[next++]);
      if (stage == EpilogueStage::add) options.epilogue = options.epilogue + add(tensors_[next++]);
      if (stage == EpilogueStage::relu) options.epilogue = options.epilogue + relu;
      if (stage == EpilogueStage::clip) options.epilogue = options.epilogue + clip(0, 6);
    }
    conv_forward(context_, tensors_[0], tensors_[1], tensors_[2], options);
  }

  void run_pool(const PoolForward& pool) {
    PoolOptions options;
    options.mode = pool.mode;
    options.window = {pool.window[0], pool.window[1]};
    options.pad = {pool.pad_begin[0], pool.pad_begin[1], pool.pad_end[0], pool.pad_end[1]};
    options.stride = {pool.stride[0], pool.stride[1]};
    pool_forward(context_, tensors_[0], tensors_[1], options);
  }

  void run_gemm(const Gemm& product) {
    GemmOptions options;
    if (!product.epilogue.empty()) options.epilogue = bias(tensors_[3]);
    gemm(context_, tensors_[0], tensors_[1], tensors_[2], options);
  }

  void run_softmax(const SoftmaxForward& softmax) {
    SoftmaxOptions options;
    options.axis = softmax.axis;
    options.mode = softmax.mode;
    softmax_forward(context_, tensors_[0], tensors_[1], options);
  }

  Context context_;
  std::vector<DeviceMemory> memory_;
  std::vector<Tensor> tensors_;
};

class ApplicationTest : public ProgramTest {
 protected:
  ContextOptions options(const std::string& cache) const {
    ContextOptions options;
    Environment environment = Environment::read();
    environment.cache_home.clear();
    environment.record = path("recorded.txt");
    environment.kernel_store = environment_.at("KILN_KERNEL_STORE");  // that of the programs it is compared with
    options.environment = environment;
    options.cache = cache;
    return options;
  }

  /// options() that serve no request: all that there is to take kernels from is a bundle without any. Requests are
  /// recorded before anything is made for them.
  ContextOptions options_that_only_record() const {
    ContextOptions recording = options("off");
    recording.environment->nvrtc = "/nonexistent/libnvrtc.so";
    recording.bundles = {path("without_kernels.kiln")};
    execution::write_bundle(recording.bundles.front(), {}, "1", "13.0");
    return recording;
  }

  Keys recorded() const {
    Keys keys;
    for (const RequestLine& line : parse_requests(read("recorded.txt"))) keys.insert(line.request.key());
    return keys;
  }
};

TEST_F(ApplicationTest, HitsEveryLayerOfATunedModelExactly) {
  const Outcome tuned =
      kiln({"tune", model_path("squeezenet1_1"), "--db", path("tuning.db"), "--candidates", "1", "--json", "--quiet"});
  ASSERT_EQ(tuned.exit_code, 0) << tuned.err;
  Keys keys;
  Engine engine(options(path("tuning.db")));
  const nlohmann::json report = nlohmann::json::parse(tuned.out);
  for (const auto& layer : report["layers"]) {
    const Request request = Request::parse(layer["request"].get<std::string>());
    keys.insert(request.key());
    engine.run(request);
    EXPECT_THAT(engine.context().plan(request).source(), testing::HasSubstr("on this device")) << request.key();
  }
  EXPECT_EQ(recorded(), keys);
}

class ModelRequests : public ApplicationTest, public testing::WithParamInterface<const char*> {};

TEST_P(ModelRequests, AreWhatAnApplicationWithTheSameLayersRecords) {
  const ModelListing listing = read_onnx(model_path(GetParam()), {});
  ASSERT_FALSE(listing.layers.empty());
  Keys keys;
  Engine engine(options_that_only_record());
  for (const ModelLayer& layer : listing.layers) {
    keys.insert(layer.request.key());
    EXPECT_THROW(engine.run(layer.request), Error) << "nothing can serve it";
  }
  EXPECT_EQ(recorded(), keys);
}

// The layers of the model `normalisations`, with tensors of the extents that its nodes have.
class NormalisedNetwork {
 public:
  explicit NormalisedNetwork(const ContextOptions& options) : context_(options) {}

  void run() {
    const Tensor images = tensor({2, 6, 3, 2}), residual = tensor({2, 6, 3, 2}), flat = tensor({2, 36});
    const NormOptions channels{.w = tensor({6}), .b = tensor({6})};
    NormOptions followed = channels, training = channels, rows{.w = tensor({4}), .b = tensor({4})};
    followed.epilogue = relu;
    batch_norm_inference(context_, images, tensor({6}), tensor({6}), tensor({2, 6, 3, 2}), followed);
    followed.epilogue = add(residual) + relu;
    instance_norm_forward(context_, images, tensor({2, 6, 3, 2}), followed);
    group_norm_forward(context_, 3, images, tensor({2, 6, 3, 2}), channels);
    training.running_mean = tensor({6});
    training.running_variance = tensor({6});
    batch_norm_forward(context_, images, tensor({2, 6, 3, 2}), training);
    norm_forward(context_, {1, 2, 3}, images, tensor({2, 6, 3, 2}));
    const Tensor hidden = tensor({2, 4});
    gemm(context_, flat, tensor({36, 4}), hidden, {.epilogue = bias(tensor({4})) + relu});
    rows.mean = tensor({2, 1});
    rows.inv_deviation = tensor({2, 1});
    layer_norm_forward(context_, -1, hidden, tensor({2, 4}), rows);
    gemm(context_, hidden, tensor({4, 3}), tensor({2, 3}), {.epilogue = bias(tensor({3})) + clip(0, 6)});
  }

 private:
  Tensor tensor(const std::vector<int64_t>& extents) {
    const TensorSpec spec = TensorSpec::packed(f32, extents, dimension_letters(static_cast<int>(extents.size())));
    memory_.emplace_back(context_, static_cast<size_t>(spec.span()) * sizeof(float));
    memory_.back().upload(std::vector<std::byte>(memory_.back().size()));
    return {memory_.back().data(), f32, extents, spec.strides};
  }

  Context context_;
  std::vector<DeviceMemory> memory_;
};

TEST_F(ApplicationTest, NormalisesAndMultipliesAsAModelDoes) {
  const ModelListing listing =
      read_onnx(std::string(KILN_SOURCE_DIR) + "/tests/fuzz/corpus/onnx/normalisations.onnx", {.batch = 2});
  EXPECT_TRUE(listing.uncovered.empty());
  Keys keys;
  for (const ModelLayer& layer : listing.layers) keys.insert(layer.request.key());
  NormalisedNetwork(options("off")).run();
  EXPECT_EQ(recorded(), keys);
}

INSTANTIATE_TEST_SUITE_P(Examples, ModelRequests, testing::Values("resnet18", "mobilenet_v2"),
                         [](const auto& model) { return std::string(model.param); });

}  // namespace
}  // namespace kiln::cli
