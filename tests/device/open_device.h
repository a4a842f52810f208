// The device that tests of this room run on: that of KILN_DRIVER, else a GPU if there is one, else the emulated one.
#pragma once

#include <memory>
#include <string>

#include "kiln/base/environment.h"
#include "kiln/device/arch.h"
#include "kiln/device/context.h"
#include "kiln/device/module.h"
#include "kiln/device/nvrtc.h"

namespace kiln::device {

/// A driver, its first device, a context on it, and a compiler for it.
struct OpenDevice {
  Environment environment = Environment::read();
  std::shared_ptr<const Driver> driver = Driver::open({.library = environment.driver});
  Device device{driver, 0};
  std::shared_ptr<const ContextHandle> context = ContextHandle::acquire(device);
  std::shared_ptr<const Nvrtc> nvrtc = Nvrtc::open({.library = environment.nvrtc});

  /// Compiles `source` for this device and loads it.
  Module load(const std::string& source, const std::string& name) const {
    require_driver_for(*nvrtc, *driver);
    const std::string arch = real_arch(device.info().cc_major, device.info().cc_minor, ArchFeatures::portable);
    return Module(context, nvrtc->compile(source, name, {.arch = arch}).image(*driver), name);
  }
};

}  // namespace kiln::device
