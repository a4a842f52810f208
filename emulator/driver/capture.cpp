#include "capture.h"

#include <algorithm>
#include <utility>

#include "driver.h"

namespace kiln::emulator {
namespace {

// Per thread by definition of the API.
CUstreamCaptureMode& thread_mode() {
  thread_local CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
  return mode;
}

bool is_legacy(const StreamUse& use) {
  return use.stream == use.context->legacy_stream();
}

[[noreturn]] void invalidate(Capture& capture, CUresult why) {
  capture.invalidated = true;
  fail(why);
}

void add_missing(std::vector<size_t>& to, const std::vector<size_t>& nodes) {
  for (const size_t node : nodes) {
    if (std::find(to.begin(), to.end(), node) == to.end()) to.push_back(node);
  }
}

/// Whether everything in the graph comes before what would follow `latest`.
bool is_joined(const Graph& graph, const std::vector<size_t>& latest) {
  std::vector<bool> followed(graph.nodes.size(), false);
  for (const GraphNode& node : graph.nodes) {
    for (const size_t earlier : node.after) followed[earlier] = true;
  }
  for (const size_t node : latest) followed[node] = true;
  return std::find(followed.begin(), followed.end(), false) == followed.end();
}

}  // namespace

CUstreamCaptureMode exchange_thread_mode(CUstreamCaptureMode mode) {
  return std::exchange(thread_mode(), mode);
}

void Captures::begin(const StreamUse& use, CUstreamCaptureMode mode) {
  require(!is_legacy(use), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  const std::lock_guard lock(mutex_);
  require(use.stream->captured.capture == nullptr, CUDA_ERROR_ILLEGAL_STATE);
  auto capture = std::make_shared<Capture>();
  capture->graph->context = use.context;
  capture->mode = mode;
  capture->thread = std::this_thread::get_id();
  capture->origin = use.stream.get();
  capture->streams.push_back(use.stream);
  use.stream->captured = {capture, {}};
  captures_.push_back(std::move(capture));
  active_.fetch_add(1, std::memory_order_release);
}

void Captures::close(const std::shared_ptr<Capture>& capture) {
  for (const std::weak_ptr<Stream>& member : capture->streams) {
    if (const std::shared_ptr<Stream> stream = member.lock()) stream->captured = {};
  }
  std::erase(captures_, capture);
  active_.fetch_sub(1, std::memory_order_release);
}

std::shared_ptr<Graph> Captures::end(const StreamUse& use) {
  const std::lock_guard lock(mutex_);
  const std::shared_ptr<Capture> capture = use.stream->captured.capture;
  require(capture != nullptr, CUDA_ERROR_ILLEGAL_STATE);
  require(capture->origin == use.stream.get(), CUDA_ERROR_STREAM_CAPTURE_UNMATCHED);
  require(capture->mode == CU_STREAM_CAPTURE_MODE_RELAXED || capture->thread == std::this_thread::get_id(),
          CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD);
  const bool joined = is_joined(*capture->graph, use.stream->captured.latest);
  close(capture);
  require(!capture->invalidated, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  require(joined, CUDA_ERROR_STREAM_CAPTURE_UNJOINED);
  return capture->graph;
}

CUstreamCaptureStatus Captures::status(const StreamUse& use) const {
  if (idle()) return CU_STREAM_CAPTURE_STATUS_NONE;
  const std::lock_guard lock(mutex_);
  require(ordered_after(use) == nullptr, CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
  const std::shared_ptr<Capture>& capture = use.stream->captured.capture;
  if (capture == nullptr) return CU_STREAM_CAPTURE_STATUS_NONE;
  return capture->invalidated ? CU_STREAM_CAPTURE_STATUS_INVALIDATED : CU_STREAM_CAPTURE_STATUS_ACTIVE;
}

void Captures::forget(const Stream& stream) {
  if (idle()) return;
  const std::lock_guard lock(mutex_);
  const std::shared_ptr<Capture> capture = stream.captured.capture;
  if (capture != nullptr && capture->origin == &stream) close(capture);
}

/// A capture that work on the stream would have to wait for, or null: the legacy default stream waits for every
/// blocking stream, which cannot be when one of those is only recorded.
std::shared_ptr<Capture> Captures::ordered_after(const StreamUse& use) const {
  if (!is_legacy(use)) return nullptr;
  for (const std::shared_ptr<Capture>& capture : captures_) {
    for (const std::weak_ptr<Stream>& member : capture->streams) {
      const std::shared_ptr<Stream> stream = member.lock();
      if (stream != nullptr && stream->track->legacy == use.stream->track) return capture;
    }
  }
  return nullptr;
}

void Captures::refuse_implicit_dependency(const StreamUse& use) {
  if (const auto capture = ordered_after(use)) invalidate(*capture, CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
}

bool Captures::add(const StreamUse& use, Work& work) {
  if (idle()) return false;
  const std::lock_guard lock(mutex_);
  refuse_implicit_dependency(use);
  CapturePosition& position = use.stream->captured;
  if (position.capture == nullptr) return false;
  require(!position.capture->invalidated, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  std::vector<GraphNode>& nodes = position.capture->graph->nodes;
  nodes.push_back({use.context, std::move(work), std::move(position.latest), nullptr});
  position.latest = {nodes.size() - 1};
  return true;
}

bool Captures::record(const StreamUse& use, Event& event) {
  const std::lock_guard lock(mutex_);
  refuse_implicit_dependency(use);
  const CapturePosition& position = use.stream->captured;
  if (position.capture != nullptr) {
    require(!position.capture->invalidated, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  }
  event.captured = position;
  return position.capture != nullptr;
}

bool Captures::wait(const StreamUse& use, Event& event) {
  const std::lock_guard lock(mutex_);
  const CapturePosition& from = event.captured;
  CapturePosition& position = use.stream->captured;
  if (from.capture == nullptr) {
    if (position.capture == nullptr) return false;
    // The graph would depend on work outside of it.
    invalidate(*position.capture, CUDA_ERROR_STREAM_CAPTURE_ISOLATION);
  }
  const bool in_progress = std::find(captures_.begin(), captures_.end(), from.capture) != captures_.end();
  require(in_progress, CUDA_ERROR_CAPTURED_EVENT);
  require(!from.capture->invalidated, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  require(!is_legacy(use), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  if (position.capture == nullptr) {
    from.capture->streams.push_back(use.stream);
    position.capture = from.capture;
  }
  if (position.capture != from.capture) {
    position.capture->invalidated = true;
    invalidate(*from.capture, CUDA_ERROR_STREAM_CAPTURE_MERGE);
  }
  add_missing(position.latest, from.latest);
  return true;
}

void Captures::before_unsafe_call() {
  if (idle() || thread_mode() == CU_STREAM_CAPTURE_MODE_RELAXED) return;
  const std::lock_guard lock(mutex_);
  bool forbidden = false;
  for (const std::shared_ptr<Capture>& capture : captures_) {
    const bool own = capture->thread == std::this_thread::get_id();
    const bool everybody =
        capture->mode == CU_STREAM_CAPTURE_MODE_GLOBAL && thread_mode() == CU_STREAM_CAPTURE_MODE_GLOBAL;
    if (capture->mode == CU_STREAM_CAPTURE_MODE_RELAXED || !(own || everybody)) continue;
    capture->invalidated = true;
    forbidden = true;
  }
  require(!forbidden, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
}

void Captures::before_synchronising(const StreamUse& use) {
  if (idle()) return;
  const std::lock_guard lock(mutex_);
  refuse_implicit_dependency(use);
  if (use.stream->captured.capture != nullptr) {
    invalidate(*use.stream->captured.capture, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  }
}

void Captures::before_synchronising(const Context& context) {
  if (idle()) return;
  const std::lock_guard lock(mutex_);
  for (const std::shared_ptr<Capture>& capture : captures_) {
    if (capture->graph->context.lock().get() != &context) continue;
    invalidate(*capture, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  }
}

void Captures::before_synchronising(const Event& event) {
  const std::lock_guard lock(mutex_);
  if (event.captured.capture != nullptr) invalidate(*event.captured.capture, CUDA_ERROR_CAPTURED_EVENT);
}

}  // namespace kiln::emulator
