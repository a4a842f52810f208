// How an inference engine takes Kiln in: its own memory pool, its own streams and status codes, its own kernels where
// Kiln has none. docs/engines.md explains each part.
#include <kiln/base/error.h>
#include <kiln/call.h>
#include <kiln/context.h>
#include <kiln/memory.h>
#include <kiln/plan.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace engine {

enum class Status { ok, unsupported, wrong_arguments, device_lost };

/// The engine's caching allocator: memory that work on a stream has used goes to later work on the same stream.
class Pool {
 public:
  /// Takes memory from `context`'s device, as an engine would by cudaMalloc. Before that is set there is none.
  void use(kiln::Context& context) { context_ = &context; }

  void* allocate(size_t bytes, kiln::Stream stream) {
    const std::scoped_lock lock(mutex_);
    auto& free = free_[stream];
    const auto fitting =
        std::find_if(free.begin(), free.end(), [&](const auto& block) { return block.size() >= bytes; });
    if (fitting == free.end()) {
      ++allocations_;
      return lent_.emplace_back(*context_, bytes).data();
    }
    lent_.push_back(std::move(*fitting));
    free.erase(fitting);
    return lent_.back().data();
  }
  void release(void* memory, kiln::Stream stream) {
    const std::scoped_lock lock(mutex_);
    const auto block =
        std::find_if(lent_.begin(), lent_.end(), [&](const auto& each) { return each.data() == memory; });
    free_[stream].push_back(std::move(*block));
    lent_.erase(block);
  }
  size_t allocations() const { return allocations_; }

 private:
  kiln::Context* context_ = nullptr;
  std::mutex mutex_;
  std::map<kiln::Stream, std::vector<kiln::DeviceMemory>> free_;
  std::vector<kiln::DeviceMemory> lent_;
  size_t allocations_ = 0;
};

/// An Error of Kiln's as the engine reports it. A layer that Kiln cannot serve is no fault: the engine has kernels of
/// its own.
Status status_of(const kiln::Error& error) {
  switch (error.code()) {
    case kiln::ErrorCode::unsupported:
    case kiln::ErrorCode::compile_failed:
    case kiln::ErrorCode::missing_library:
      return Status::unsupported;
    case kiln::ErrorCode::invalid_argument:
    case kiln::ErrorCode::parse_error:
      return Status::wrong_arguments;
    default:
      return Status::device_lost;
  }
}

/// A layer of the engine's graph: made once, run many times, from one thread at a time.
class Layer {
 public:
  /// `line`: a request (docs/request-syntax.md). Weights stay the same: what a kernel makes of them is made here.
  Status build(kiln::Context& context, Pool& pool, const std::string& line, std::span<const kiln::Address> operands,
               kiln::Stream stream) {
    try {
      plan_.emplace(context.plan(kiln::Request::parse(line)));
      if (plan_->prepared_bytes() > 0) {
        prepared_ = pool.allocate(static_cast<size_t>(plan_->prepared_bytes()), stream);
        plan_->prepare_weights(stream, operands, prepared_);
      }
      return Status::ok;
    } catch (const kiln::Error& error) {
      std::fprintf(stderr, "engine: %s\n", error.what());
      return status_of(error);
    }
  }

  /// Enqueues and returns. Workspace is the pool's, for the time of this call.
  Status run(Pool& pool, std::span<const kiln::Address> operands, kiln::Stream stream) const {
    try {
      const auto bytes =
          static_cast<size_t>(prepared_ != nullptr ? plan_->prepared_workspace_bytes() : plan_->workspace_bytes());
      void* workspace = bytes > 0 ? pool.allocate(bytes, stream) : nullptr;
      if (prepared_ != nullptr) {
        plan_->run_prepared(stream, operands, prepared_, workspace);
      } else {
        plan_->run(stream, operands, workspace);
      }
      if (workspace != nullptr) pool.release(workspace, stream);  // for later work on this stream
      return Status::ok;
    } catch (const kiln::Error& error) {
      std::fprintf(stderr, "engine: %s\n", error.what());
      return status_of(error);
    }
  }

 private:
  std::optional<kiln::Plan> plan_;
  void* prepared_ = nullptr;
};

}  // namespace engine

namespace {

int run() {
  engine::Pool pool;
  kiln::ContextOptions options;
  options.workspace_allocator.allocate = [&](size_t bytes, kiln::Stream stream) {
    return pool.allocate(bytes, stream);
  };
  options.workspace_allocator.release = [&](void* memory, size_t, kiln::Stream stream) {
    pool.release(memory, stream);
  };
  options.announce = [](std::string_view message) {
    std::fprintf(stderr, "engine's log: %.*s\n", static_cast<int>(message.size()), message.data());
  };
  kiln::Context context(options);
  pool.use(context);
  const kiln::Stream stream = nullptr;  // an engine's own: a CUstream or cudaStream_t

  // All elements are 1, so that every output of the convolution away from the border is 16 * 9.
  const std::vector<float> ones(size_t{16} * 20 * 20, 1.0F);
  kiln::DeviceMemory x(context, ones.size() * sizeof(float)), y(context, ones.size() * sizeof(float)),
      w(context, size_t{16} * 16 * 9 * sizeof(float));
  x.upload(std::as_bytes(std::span(ones)));
  w.upload(std::as_bytes(std::span(ones).first(16 * 16 * 9)));
  const std::string conv =
      "conv_forward x=f32:1x16x20x20 w=f32:16x16x3x3 y=f32:1x16x20x20 pad=1 epilogue=relu fast constant_weights";
  const std::vector<kiln::Address> operands{x.data(), w.data(), y.data()};

  engine::Layer layer;
  if (layer.build(context, pool, conv, operands, stream) != engine::Status::ok) return 1;
  for (int i = 0; i < 10; ++i) {
    if (layer.run(pool, operands, stream) != engine::Status::ok) return 1;
  }
  std::vector<float> result(ones.size());
  y.download(std::as_writable_bytes(std::span(result)));
  const float middle = result[10 * 20 + 10];
  std::printf("output in the middle: %g, expected 144\n", static_cast<double>(middle));

  // Calls of layers as data take workspace from the pool by themselves.
  const kiln::Tensor logits(x.data(), kiln::f32, {20, 320}, kiln::nc), soft(y.data(), kiln::f32, {20, 320}, kiln::nc);
  kiln::call(context, "softmax_forward axis=1", {{"x", logits}, {"y", soft}}, {}, stream);
  y.download(std::as_writable_bytes(std::span(result)));
  std::printf("softmax of equal logits: %g, expected %g\n", static_cast<double>(result[0]), 1.0 / 320);

  // Mistakes in a request are known when the layer is built, and before anything runs.
  engine::Layer foreign;
  const engine::Status status =
      foreign.build(context, pool, "conv_forward x=f32:1x16x20x20 w=f32:16x16x3x3 acc=f64", operands, stream);
  std::printf("a request that makes no sense: %s\n", status == engine::Status::wrong_arguments ? "refused" : "taken");
  std::printf("the pool allocated %zu times\n", pool.allocations());
  const bool right =
      middle == 144 && std::abs(result[0] - 1.0F / 320) < 1e-6F && status == engine::Status::wrong_arguments;
  return right ? 0 : 1;
}

}  // namespace

int main() {
  try {
    return run();
  } catch (const kiln::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
