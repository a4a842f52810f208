// PerThread: a value of each thread, for as long as anything of the thread runs.
#pragma once

#include <pthread.h>

#include <memory>
#include <new>

namespace kiln::emulator {

/// A default-constructed T of each thread that asks. Unlike thread_local, whose objects end before those of static
/// storage do, the main thread's is never destroyed: the driver is called until the last static object has ended.
/// Another thread's is destroyed with the thread, after its thread_local objects. A PerThread must have static storage.
template <class T>
class PerThread {
 public:
  PerThread() {
    if (pthread_key_create(&key_, [](void* value) { delete static_cast<T*>(value); }) != 0) throw std::bad_alloc();
  }
  PerThread(const PerThread&) = delete;
  PerThread& operator=(const PerThread&) = delete;

  T& get() const {
    if (void* const value = pthread_getspecific(key_)) return *static_cast<T*>(value);
    auto made = std::make_unique<T>();
    if (pthread_setspecific(key_, made.get()) != 0) throw std::bad_alloc();
    return *made.release();
  }

 private:
  pthread_key_t key_{};
};

}  // namespace kiln::emulator
