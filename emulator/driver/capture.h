// Stream capture: recording a stream's work into a graph instead of executing it.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "graph.h"

namespace kiln::emulator {

struct StreamUse;

/// One capture: the graph it fills, where it began, and the streams that have joined it.
class Capture {
 public:
  std::shared_ptr<Graph> graph = std::make_shared<Graph>();
  CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
  std::thread::id thread;  ///< that began it
  const Stream* origin = nullptr;
  std::vector<std::weak_ptr<Stream>> streams;
  bool invalidated = false;
};

/// The captures that are going on in the process, with the rules of the CUDA programming guide. Thread-safe.
///
/// A call that the rules forbid fails with the driver's code for it (CUDA_ERROR_STREAM_CAPTURE_...) and invalidates the
/// captures that it would have disturbed; cuStreamEndCapture fails then.
class Captures {
 public:
  void begin(const StreamUse& use, CUstreamCaptureMode mode);
  /// Ends the capture that began on the stream, and returns what it recorded.
  std::shared_ptr<Graph> end(const StreamUse& use);
  /// Fails, and spoils nothing, for the legacy stream while it could not be used for the capture of another.
  CUstreamCaptureStatus status(const StreamUse& use) const;
  /// The stream is destroyed: a capture that began on it is over.
  void forget(const Stream& stream);

  /// If the stream is being captured, moves `work` to the end of its graph. False: it is to be executed.
  bool add(const StreamUse& use, Work& work);
  /// If the stream is being captured, `event` marks its place in the graph. False: record the time.
  bool record(const StreamUse& use, Event& event);
  /// If `event` marks a place in a capture, the stream continues from there, too. False: wait for the event's time.
  bool wait(const StreamUse& use, Event& event);

  /// The calling thread is about to do something that a capture in progress may forbid, such as to allocate memory.
  void before_unsafe_call();
  /// The host is about to wait for, or ask about, the stream; the whole context; the event.
  void before_synchronising(const StreamUse& use);
  void before_synchronising(const Context& context);
  void before_synchronising(const Event& event);

 private:
  bool idle() const { return active_.load(std::memory_order_acquire) == 0; }
  void close(const std::shared_ptr<Capture>& capture);
  std::shared_ptr<Capture> ordered_after(const StreamUse& use) const;
  void refuse_implicit_dependency(const StreamUse& use);

  std::atomic<int> active_ = 0;
  mutable std::mutex mutex_;                        // guards the rest, and every CapturePosition
  std::vector<std::shared_ptr<Capture>> captures_;  // in progress
};

/// The calling thread's own restraint, cuThreadExchangeStreamCaptureMode: sets it and returns what it was.
CUstreamCaptureMode exchange_thread_mode(CUstreamCaptureMode mode);

}  // namespace kiln::emulator
