// Runs of a model as CUDA graphs: which are, that they compute what the kernels would, and what is done where none can
// be made.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "driver_watch.h"
#include "kiln/base/error.h"
#include "kiln/device/context.h"
#include "kiln/device/event.h"
#include "kiln/device/stream.h"
#include "kiln/memory.h"
#include "model_fixture.h"

namespace kiln::model_cuda_graph_test {
namespace {

using models::HostArray;
using test::ModelTest;
using test::OnnxModel;
using test::random_values;
using test::small_network;
using test::small_network_of;
using testing::HasSubstr;
using testing_support::DriverWatch;

/// Memory for the tensors of the small network, and its runs.
class Images {
 public:
  Images(Context& context, int64_t batch)
      : batch_(batch),
        x_(context, static_cast<size_t>(batch) * 105 * sizeof(float)),
        y_(context, static_cast<size_t>(batch) * 2 * sizeof(float)) {}

  /// Other values in the same places.
  void fill() {
    values_ = random_values(static_cast<size_t>(batch_) * 105, ++seed_);
    x_.upload(std::as_bytes(std::span(values_)));
    const std::vector<float> nothing(static_cast<size_t>(batch_) * 2, -1000);
    y_.upload(std::as_bytes(std::span(nothing)));
  }
  void enqueue(Model& model, Stream stream = nullptr) const {
    model.run({{"x", Tensor(x_.data(), f32, {batch_, 3, 7, 5}, contiguous)}},
              {{"y", Tensor(y_.data(), f32, {batch_, 2}, contiguous)}}, stream);
  }
  void expect_right() const {
    std::vector<float> y(static_cast<size_t>(batch_) * 2);
    y_.download(std::as_writable_bytes(std::span(y)));
    const std::vector<double> expected = small_network_of(values_, batch_);
    for (size_t i = 0; i < y.size(); ++i) ASSERT_NEAR(static_cast<double>(y[i]), expected[i], 1e-5);
  }
  void run(Model& model) {
    fill();
    enqueue(model);
    expect_right();
  }

 private:
  int64_t batch_;
  unsigned seed_ = 20;
  DeviceMemory x_, y_;
  std::vector<float> values_;
};

class ModelCudaGraphTest : public ModelTest {
 protected:
  ModelCudaGraphTest() : ModelTest(watched()) {}
  ~ModelCudaGraphTest() override {
    for (auto* failure :
         {&watch_.kernel_fails, &watch_.capture_fails, &watch_.instantiation_fails, &watch_.graph_fails}) {
      *failure = cuda_abi::CUDA_SUCCESS;
    }
  }

  static ContextOptions watched() {
    ContextOptions how = options();
    how.environment->driver = KILN_WATCHED_DRIVER;
    return how;
  }

  struct Launches {
    int kernels, graphs;
    bool operator==(const Launches&) const = default;
  };
  /// Launches of `enqueue`.
  Launches launches(const std::function<void()>& enqueue) {
    const int kernels = watch_.kernels, graphs = watch_.graphs;
    enqueue();
    return {watch_.kernels - kernels, watch_.graphs - graphs};
  }
  Launches of_run(Model& model, Images& images) {
    return launches([&] { images.run(model); });
  }

  /// Runs the model often enough for a graph, and returns how many kernels it has.
  int make_graph(Model& model, Images& images) {
    const Launches first = of_run(model, images);
    EXPECT_EQ(first.graphs, 0);
    EXPECT_GT(first.kernels, 1);
    EXPECT_EQ(of_run(model, images), (Launches{first.kernels, 1})) << "captured and launched";
    return first.kernels;
  }

  const std::shared_ptr<const device::ContextHandle> device_ =
      device::ContextHandle::acquire(device::Device(device::Driver::open({std::string(KILN_WATCHED_DRIVER)}), 0));
  DriverWatch& watch_ = testing_support::watch_of(KILN_WATCHED_DRIVER);
  static constexpr Launches replayed_ = {0, 1};
};

TEST_F(ModelCudaGraphTest, RunsOnTheSameTensorsAreOneLaunchEach) {
  Model model = load(small_network());
  Images images(context_, 1);
  make_graph(model, images);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(of_run(model, images), replayed_);
  EXPECT_EQ(model.graphs().kept, 1U);
  EXPECT_EQ(model.graphs().unused_because, "");
}

// The kernels of a graph would read what is there now, or fault and lose the device's context.
TEST_F(ModelCudaGraphTest, MemoryThatWasFreedIsRefusedBeforeAGraphReadsIt) {
  Model model = load(small_network());
  const DeviceMemory y(context_, 2 * sizeof(float));
  const Tensor result(y.data(), f32, {1, 2}, contiguous);
  std::optional<DeviceMemory> x(std::in_place, context_, 105 * sizeof(float));
  const std::vector<float> values = random_values(105, 1);
  x->upload(std::as_bytes(std::span(values)));
  const Tensor image(x->data(), f32, {1, 3, 7, 5}, contiguous);
  for (int i = 0; i < 3; ++i) model.run({{"x", image}}, {{"y", result}});
  ASSERT_EQ(model.graphs().kept, 1U);
  x.reset();
  const Launches refused = launches([&] {
    try {
      model.run({{"x", image}}, {{"y", result}});
      ADD_FAILURE() << "ran";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
      EXPECT_THAT(error.what(), HasSubstr("input 'x' is at 0x"));
    }
  });
  EXPECT_EQ(refused, (Launches{0, 0}));
  Images others(context_, 1);
  others.run(model);
}

TEST_F(ModelCudaGraphTest, TensorsInOtherPlacesHaveTheirOwn) {
  Model model = load(small_network());
  Images first(context_, 1), second(context_, 1);
  make_graph(model, first);
  make_graph(model, second);
  for (int i = 0; i < 2; ++i) {
    for (Images* const images : {&second, &first}) EXPECT_EQ(of_run(model, *images), replayed_);
  }
  EXPECT_EQ(model.graphs().kept, 2U);
}

TEST_F(ModelCudaGraphTest, OneOtherAddressIsAnotherPlace) {
  Model model = load(small_network());
  const std::vector<float> values = random_values(105, 1);
  DeviceMemory x(context_, 105 * sizeof(float));
  x.upload(std::as_bytes(std::span(values)));
  const std::vector<double> expected = small_network_of(values, 1);
  std::array<DeviceMemory, 2> outputs = {DeviceMemory(context_, 8), DeviceMemory(context_, 8)};
  for (int i = 0; i < 6; ++i) {
    DeviceMemory& y = outputs[static_cast<size_t>(i % 2)];
    std::array<float, 2> result = {-1000, -1000};
    y.upload(std::as_bytes(std::span(result)));
    model.run({{"x", Tensor(x.data(), f32, {1, 3, 7, 5}, contiguous)}},
              {{"y", Tensor(y.data(), f32, {1, 2}, contiguous)}});
    y.download(std::as_writable_bytes(std::span(result)));
    for (size_t j = 0; j < 2; ++j) EXPECT_NEAR(static_cast<double>(result[j]), expected[j], 1e-5);
  }
  EXPECT_EQ(model.graphs().kept, 2U);
}

// A graph that is launched once would cost more than the kernels.
TEST_F(ModelCudaGraphTest, TensorsThatAreNeverWhereTheyWereHaveNone) {
  Model model = load(small_network());
  std::vector<Images> all;
  for (size_t i = 0; i <= ModelGraphs::most; ++i) all.emplace_back(context_, 1);
  const int captures = watch_.captures;
  for (int round = 0; round < 3; ++round) {
    for (Images& images : all) EXPECT_EQ(of_run(model, images).graphs, 0);
  }
  EXPECT_EQ(watch_.captures, captures);
  EXPECT_EQ(model.graphs().kept, 0U);
}

TEST_F(ModelCudaGraphTest, TheOneThatWasNotUsedForLongestIsGivenUp) {
  Model model = load(small_network());
  std::vector<Images> all;
  for (size_t i = 0; i <= ModelGraphs::most; ++i) all.emplace_back(context_, 1);
  for (size_t i = 0; i < ModelGraphs::most; ++i) make_graph(model, all[i]);
  EXPECT_EQ(of_run(model, all[0]), replayed_);
  EXPECT_EQ(of_run(model, all[ModelGraphs::most]).graphs, 0);
  EXPECT_EQ(model.graphs().kept, ModelGraphs::most - 1) << "the run that comes in has no graph yet";
  EXPECT_EQ(of_run(model, all[ModelGraphs::most]).graphs, 1);
  EXPECT_EQ(model.graphs().kept, ModelGraphs::most);
  for (size_t i = 0; i <= ModelGraphs::most; ++i) {
    if (i == 1) continue;
    EXPECT_EQ(of_run(model, all[i]), replayed_) << i;
  }
  make_graph(model, all[1]);
}

TEST_F(ModelCudaGraphTest, AGraphRunsOnEveryStream) {
  Model model = load(small_network());
  Images images(context_, 1);
  const device::Stream first(device_), second(device_);
  constexpr uintptr_t per_thread = 2;  // CU_STREAM_PER_THREAD
  for (int round = 0; round < 2; ++round) {
    for (Stream stream :
         {Stream{first.raw()}, Stream{nullptr}, Stream{second.raw()}, reinterpret_cast<Stream>(per_thread)}) {
      images.fill();
      images.enqueue(model, stream);
      device_->synchronize();
      images.expect_right();
    }
  }
  EXPECT_EQ(model.graphs().kept, 1U);
}

TEST_F(ModelCudaGraphTest, ThreadsTakeTurns) {
  Model model = load(small_network());
  std::mutex turn;
  const auto work = [&] {
    Images images(context_, 1);
    const device::Stream stream(device_);
    for (int i = 0; i < 8; ++i) {
      images.fill();
      const std::lock_guard lock(turn);
      images.enqueue(model, stream.raw());
      stream.synchronize();
      images.expect_right();
    }
  };
  std::thread other(work);
  work();
  other.join();
  EXPECT_EQ(model.graphs().kept, 2U);
}

TEST_F(ModelCudaGraphTest, EachBatchKeepsItsOwn) {
  const test::TemporaryFile file(small_network().bytes());
  for (const bool dynamic : {false, true}) {
    Model model(context_, file.path(), {.batch = 4, .dynamic_batch = dynamic});
    Images four(context_, 4), three(context_, 3);
    make_graph(model, four);
    model.set_batch(3);
    make_graph(model, three);
    for (int i = 0; i < 2; ++i) {
      model.set_batch(4);
      EXPECT_EQ(of_run(model, four), replayed_);
      model.set_batch(3);
      EXPECT_EQ(of_run(model, three), replayed_);
    }
    EXPECT_EQ(model.graphs().kept, 2U);
  }
}

TEST_F(ModelCudaGraphTest, MoreMemoryInBetweenMakesThemAnew) {
  const test::TemporaryFile file(small_network().bytes());
  Model model(context_, file.path());
  Images one(context_, 1), many(context_, 33);
  make_graph(model, one);
  model.set_batch(33);
  EXPECT_EQ(model.graphs().kept, 0U);
  make_graph(model, many);
  model.set_batch(1);
  make_graph(model, one);
  model.set_batch(33);
  EXPECT_EQ(of_run(model, many), replayed_);
}

TEST_F(ModelCudaGraphTest, AMovedModelKeepsThem) {
  Model model = load(small_network());
  Images images(context_, 1);
  make_graph(model, images);
  Model moved = std::move(model);
  EXPECT_EQ(of_run(moved, images), replayed_);
  moved = load(small_network());
  make_graph(moved, images);
}

// Constants, views of inputs and of results: some runs copy, none compute.
TEST_F(ModelCudaGraphTest, OutputsMayBeInputsViewsAndConstants) {
  OnnxModel network(13);
  network.input("x", {2, 3})
      .integers("shape", {3, 2})
      .integers("start", {1})
      .integers("end", {2})
      .weights("c", {2}, {8, 9});
  network.node("Identity", {"x"}, {"same"});
  network.node("Reshape", {"x", "shape"}, {"view"});
  network.node("Slice", {"x", "start", "end"}, {"row"});
  network.node("Identity", {"c"}, {"constant"});
  network.node("Relu", {"x"}, {"r"});
  network.node("Transpose", {"r"}, {"t"});
  network.output("same").output("view").output("row").output("constant").output("r").output("t").output("x");
  Model model = load(network);
  DeviceMemory memory(context_, 8 * 256);
  const auto place = [&](size_t i) { return static_cast<std::byte*>(memory.data()) + i * 256; };
  const Tensor x(place(0), f32, {2, 3}, contiguous);
  std::vector<NamedTensor> outputs;
  for (const ModelTensor& tensor : model.outputs()) {
    outputs.push_back({tensor.name, Tensor(place(outputs.size() + 1), f32, tensor.extents, contiguous)});
  }
  for (const float sign : {1.0F, -1.0F, 1.0F, -1.0F}) {
    std::vector<float> all(8 * 64, -1000);
    for (size_t i = 0; i < 6; ++i) all[i] = sign * static_cast<float>(i + 1);
    memory.upload(std::as_bytes(std::span(all)));
    const NamedTensor input = {"x", x};
    model.run({&input, 1}, outputs);
    memory.download(std::as_writable_bytes(std::span(all)));
    const auto output = [&](size_t i, std::ptrdiff_t count) {
      const auto begin = all.begin() + static_cast<std::ptrdiff_t>((i + 1) * 64);
      return std::vector<float>(begin, begin + count);
    };
    const std::vector<float> given(all.begin(), all.begin() + 6);
    EXPECT_EQ(output(0, 6), given);
    EXPECT_EQ(output(1, 6), given);
    EXPECT_EQ(output(2, 3), (std::vector<float>{given[3], given[4], given[5]}));
    EXPECT_EQ(output(3, 2), (std::vector<float>{8, 9}));
    EXPECT_EQ(output(4, 6), sign > 0 ? given : std::vector<float>(6));
    EXPECT_EQ(output(5, 6), sign > 0 ? (std::vector<float>{1, 4, 2, 5, 3, 6}) : std::vector<float>(6));
    EXPECT_EQ(output(6, 6), given);
  }
  EXPECT_EQ(model.graphs().kept, 1U);
}

/// Captures of a caller's.
class CallersCaptures : public ModelCudaGraphTest {
 protected:
  const device::DriverTable& driver() const { return device_->driver().calls(); }

  /// Executes once, as a graph, the work that `enqueue` puts into the stream.
  void capture_and_launch(const std::function<void()>& enqueue, const std::function<void()>& before_launch) {
    cuda_abi::CUgraph graph = nullptr;
    cuda_abi::CUgraphExec executable = nullptr;
    ASSERT_EQ(driver().cuStreamBeginCapture_v2(stream_.raw(), cuda_abi::CU_STREAM_CAPTURE_MODE_GLOBAL),
              cuda_abi::CUDA_SUCCESS);
    enqueue();
    ASSERT_EQ(driver().cuStreamEndCapture(stream_.raw(), &graph), cuda_abi::CUDA_SUCCESS);
    ASSERT_EQ(driver().cuGraphInstantiateWithFlags(&executable, graph, 0), cuda_abi::CUDA_SUCCESS);
    before_launch();
    ASSERT_EQ(driver().cuGraphLaunch(executable, stream_.raw()), cuda_abi::CUDA_SUCCESS);
    stream_.synchronize();
    EXPECT_EQ(driver().cuGraphExecDestroy(executable), cuda_abi::CUDA_SUCCESS);
    EXPECT_EQ(driver().cuGraphDestroy(graph), cuda_abi::CUDA_SUCCESS);
  }

  const device::Stream stream_{device_};
};

TEST_F(CallersCaptures, TakeTheKernels) {
  Model model = load(small_network());
  Images images(context_, 1);
  const int kernels = make_graph(model, images);
  images.fill();
  const auto run = [&] { EXPECT_EQ(launches([&] { images.enqueue(model, stream_.raw()); }), (Launches{kernels, 0})); };
  capture_and_launch(run, [&] { images.fill(); });
  images.expect_right();
  EXPECT_EQ(of_run(model, images), replayed_);
}

TEST_F(CallersCaptures, OfAnotherStreamStayIntactWhileAGraphIsMade) {
  Model model = load(small_network());
  Images images(context_, 1), beside(context_, 1);
  const device::Stream other(device_);
  images.run(model);
  beside.run(model);
  images.fill();
  beside.fill();
  const auto run_both = [&] {
    images.enqueue(model, stream_.raw());
    beside.enqueue(model, other.raw());  // the second time: a graph is made
    beside.enqueue(model, other.raw());
  };
  const int graphs = watch_.graphs;
  capture_and_launch(run_both, [&] { EXPECT_EQ(watch_.graphs, graphs + 2); });
  images.expect_right();
  beside.expect_right();
}

/// Loads the small network, runs it until there would be a graph, and expects kernels, right results, and the reason.
class WithoutCudaGraphs : public ModelCudaGraphTest {
 protected:
  void expect_kernels(Model& model, const std::string& reason) {
    Images images(context_, 1);
    const int kernels = of_run(model, images).kernels;
    images.run(model);
    EXPECT_THAT(model.graphs().unused_because, HasSubstr(reason));
    const int captures = watch_.captures;
    for (int i = 0; i < 2; ++i) EXPECT_EQ(of_run(model, images), (Launches{kernels, 0}));
    EXPECT_EQ(watch_.captures, captures) << "tried again";
    EXPECT_EQ(model.graphs().kept, 0U);
  }
};

TEST_F(WithoutCudaGraphs, ADriverThatMakesNoneIsToldAndServes) {
  struct Fault {
    std::atomic<cuda_abi::CUresult>& failure;
    std::string text;
  };
  for (const Fault& fault :
       {Fault{watch_.capture_fails, "cuStreamBeginCapture"}, Fault{watch_.instantiation_fails, "cuGraphInstantiate"},
        Fault{watch_.graph_fails, "cuGraphLaunch"}}) {
    Model model = load(small_network());
    fault.failure = cuda_abi::CUDA_ERROR_NOT_SUPPORTED;
    expect_kernels(model, fault.text);
    fault.failure = cuda_abi::CUDA_SUCCESS;
  }
}

TEST_F(WithoutCudaGraphs, TheCallerMayWantNone) {
  Model model = load(small_network(), {.use_graph = false});
  expect_kernels(model, "ModelOptions::use_graph");
}

// On a thread without a context, as an engine's worker may be, each step would push one and pop it.
TEST_F(WithoutCudaGraphs, ARunMakesItsContextCurrentOnce) {
  Model model = load(small_network(), {.use_graph = false});
  Images images(context_, 1);
  images.fill();
  const auto pushes = [&](int runs) {
    const int before = watch_.pushes;
    for (int i = 0; i < runs; ++i) images.enqueue(model);
    return watch_.pushes - before;
  };
  EXPECT_EQ(pushes(1), 1);
  EXPECT_EQ(pushes(3), 3);
  {
    const CurrentContext current(context_);
    EXPECT_EQ(pushes(3), 0);
  }
  EXPECT_EQ(pushes(1), 1) << "none is current again";
}

TEST_F(WithoutCudaGraphs, RecordedCallsAreAllMade) {
  const std::string record = testing::TempDir() + "kiln_model_graph_test.txt";
  ContextOptions how = watched();
  how.environment->record = record;
  Context recording(how);
  const test::TemporaryFile file(small_network().bytes());
  Model model(recording, file.path());
  expect_kernels(model, "KILN_RECORD");
  std::remove(record.c_str());
}

TEST_F(WithoutCudaGraphs, ResultsAreLookedAtStepByStep) {
  ContextOptions how = watched();
  how.environment->check_numerics = NumericsPolicy::error;
  Context looking(how);
  const test::TemporaryFile file(small_network().bytes());
  Model model(looking, file.path());
  expect_kernels(model, "KILN_CHECK_NUMERICS");
}

// A graph cannot do what a kernel cannot: that is the caller's to know, and no fault of graphs.
TEST_F(ModelCudaGraphTest, FaultsOfARunAreThrown) {
  Model model = load(small_network());
  Images images(context_, 1);
  images.run(model);
  watch_.kernel_fails = cuda_abi::CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES;
  EXPECT_THROW(images.enqueue(model), Error);
  watch_.kernel_fails = cuda_abi::CUDA_SUCCESS;
  EXPECT_EQ(model.graphs().unused_because, "");
  EXPECT_EQ(of_run(model, images).graphs, 1);
  watch_.graph_fails = cuda_abi::CUDA_ERROR_LAUNCH_FAILED;
  EXPECT_THROW(images.enqueue(model), Error);
  watch_.graph_fails = cuda_abi::CUDA_SUCCESS;
  EXPECT_EQ(of_run(model, images), replayed_);
}

// A run that was refused is none that came before.
TEST_F(ModelCudaGraphTest, RefusedRunsAreForgotten) {
  Model model = load(small_network());
  Images images(context_, 1);
  watch_.kernel_fails = cuda_abi::CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES;
  EXPECT_THROW(images.enqueue(model), Error);
  watch_.kernel_fails = cuda_abi::CUDA_SUCCESS;
  make_graph(model, images);
}

}  // namespace
}  // namespace kiln::model_cuda_graph_test
