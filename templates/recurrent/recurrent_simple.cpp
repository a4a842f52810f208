#include "kiln/generator/algorithm.h"
#include "recurrent/recurrence.h"

namespace kiln {
namespace recurrent_simple_descriptor {
namespace {

struct Shape {
  int threads;
};

}  // namespace
}  // namespace recurrent_simple_descriptor

Algorithm recurrent_simple() {
  using namespace recurrent_simple_descriptor;
  using descriptor::RecurrentLayer;
  return describe<Shape, RecurrentLayer>("recurrent_simple", "recurrent_forward", "recurrent/recurrent_simple.cu")
      .trusted()
      .param("THREADS", &Shape::threads, {128, 64, 256})
      .program([](const Shape& shape, const RecurrentLayer& layer, const Target&, const Emitter& emit) {
        return descriptor::simple_recurrent_program(layer, "recurrent_simple", shape.threads, 5, emit);
      })
      .estimate([](const Shape& shape, const RecurrentLayer& layer, const Target& target, const DeviceFigures& device) {
        return descriptor::simple_recurrent_estimate(layer, shape.threads, target, device);
      });
}

}  // namespace kiln
