// The device that variants are timed on, and what is generated for it.
#pragma once

#include <memory>
#include <string>

#include "kiln/base/environment.h"
#include "kiln/device/device.h"
#include "kiln/device/nvrtc.h"
#include "kiln/execution/target.h"
#include "kiln/generator/catalogue.h"
#include "kiln/templates/catalogue.h"

namespace kiln::bench {

/// The first device of KILN_DRIVER.
struct Place {
  Environment environment = Environment::read();
  device::Device device{device::Driver::open({environment.driver.value_or("emulator")}), 0};
  std::shared_ptr<const device::Nvrtc> nvrtc = device::Nvrtc::open({environment.nvrtc});
  Target target = execution::target_for(device.info().cc_major, device.info().cc_minor, *nvrtc);
  DeviceFigures figures = execution::figures_of(device.info());
  Catalogue catalogue = make_catalogue(embedded_sources());

  std::string id() const { return device.info().id(); }
};

}  // namespace kiln::bench
