#include "conv/simple/simple.h"

#include <cmath>
#include <numeric>

#include "contraction/block_estimate.h"
#include "conv/conv_contractions.h"
#include "conv/gradients.h"
#include "descriptor/numbers.h"
#include "descriptor/prelude_and_launch.h"

namespace kiln::descriptor {
namespace simple_convolution_descriptor {
namespace {

struct Shape {
  int threads;
};

int64_t outputs_per_image(const ConvolutionAddresses& conv) {
  return conv.k() * conv.pixels_per_image();
}

Program forward_program(const std::string& name, const Shape& shape, const Contraction& contraction,
                        const Emitter& emit) {
  Prelude prelude = contraction_prelude(contraction);
  prelude.constant("THREADS", shape.threads);

  Launch launch =
      contraction_launch(name, shape.threads, {OperandArgument{"x"}, OperandArgument{"w"}, OperandArgument{"y"}});
  launch.grid[0] = blocks_for(contraction, outputs_per_image(contraction.addresses), shape.threads);
  return program_of(emit.source(prelude), launch);
}

Estimate predict_forward(const Shape& shape, const Contraction& contraction, const Target& target,
                         const DeviceFigures& device) {
  const ConvolutionAddresses& conv = contraction.addresses;
  const double taps = static_cast<double>(conv.c_per_group() * conv.taps()) *
                      (contraction.blend.alpha == Scale::zero ? 0 : inside_share(conv));
  const double warps = shape.threads / 32.0;
  // Lanes are neighbours in q: one access where those are neighbours in x, a sector each where not.
  const int64_t element = size_of(conv.x.dtype);
  const Access x = access_at_pitch(conv.x.strides[dimension::column] * conv.columns.stride * element, element);
  GridWork work;
  work.blocks = std::ceil(static_cast<double>(conv.y.elements()) / shape.threads);
  work.block.threads = shape.threads;
  work.block.registers = 40;
  work.block.fma = warps * taps;
  work.block.code_instructions = 140;
  work.block.instructions = warps * (80 + 9 * taps);
  work.block.global_sectors = warps * taps * (1 + x.l1);
  work.block.l2_bytes = warps * taps * (1 + x.sectors) * 32 / 8;
  work.block.latency_clocks = 1500 + 90 * taps;  // a load or two in flight
  work.dram_bytes = compulsory_bytes(contraction);
  return grid_estimate(work, target.arch, device);
}

Program data_program(const std::string& name, const Shape& shape, const DataGradient& gradient, const Emitter& emit) {
  Prelude prelude = gradient_prelude(gradient);
  prelude.constant("THREADS", shape.threads);

  Launch launch =
      contraction_launch(name, shape.threads, {OperandArgument{"dy"}, OperandArgument{"w"}, OperandArgument{"dx"}});
  launch.grid[0] = blocks_for(gradient.c() * gradient.planes.extent * gradient.rows.extent * gradient.columns.extent,
                              gradient.n(), gradient.dynamic_batch, shape.threads);
  return program_of(emit.source(prelude), launch);
}

Estimate predict_data(const Shape& shape, const DataGradient& gradient, const Target& target,
                      const DeviceFigures& device) {
  // Taps that miss an output because of the stride are left out. Lanes are neighbours in the columns of dx.
  const auto met = [](const WindowAxis& axis) {
    return static_cast<double>(ceil_div(axis.window, axis.stride / std::gcd(axis.stride, axis.dilation)));
  };
  SimpleWork thread;
  thread.products = thread.tried =
      static_cast<double>(gradient.k_per_group()) * met(gradient.planes) * met(gradient.rows) * met(gradient.columns);
  const int64_t element = size_of(gradient.dy.dtype);
  thread.first = access_at_pitch(gradient.dy.strides[dimension::column] * element, element,
                                 ceil_div(int64_t{32}, gradient.columns.stride));
  thread.second = access_at_pitch(0, size_of(gradient.w.dtype));
  return simple_gradient_estimate(shape.threads, thread, {&gradient.dy, &gradient.w, &gradient.dx}, target, device);
}

Program filter_program(const std::string& name, const Shape& shape, const FilterGradient& gradient,
                       const Emitter& emit) {
  Prelude prelude = gradient_prelude(gradient);
  prelude.constant("THREADS", shape.threads);

  Launch launch = launch_of(name, shape.threads,
                            {OperandArgument{"x"}, OperandArgument{"dy"}, OperandArgument{"dw"}, Scalar::alpha,
                             Scalar::beta, UserArgument{}, Scalar::n});
  launch.grid[0] = Count{ceil_div(gradient.dw.elements(), shape.threads)};
  return program_of(emit.source(prelude), launch);
}

Estimate predict_filter(const Shape& shape, const FilterGradient& gradient, const Target& target,
                        const DeviceFigures& device) {
  // A window that lies in the padding costs as much as another.
  SimpleWork thread;
  thread.products = thread.tried = static_cast<double>(gradient.n() * gradient.pixels_per_image()) /
                                   static_cast<double>(gradient.region_axes.count());
  thread.rows = thread.products * static_cast<double>(gradient.region_axes.columns.regions) /
                static_cast<double>(gradient.columns.outputs);
  // Lanes are neighbours in dw, column first: elements of a filter meet different x and the same dy.
  const int64_t x_element = size_of(gradient.x.dtype), dy_element = size_of(gradient.dy.dtype);
  const auto along = [&](const WindowAxis& axis, size_t number) {
    return LaneAxis{axis.window, axis.dilation * gradient.x.strides[number] * x_element};
  };
  const LaneAxis channels{gradient.c_per_group(), gradient.x.strides[dimension::channel] * x_element};
  thread.first = access_along({along(gradient.columns, dimension::column),
                               along(gradient.rows, dimension::row),
                               along(gradient.planes, dimension::plane),
                               channels,
                               {1, 0}},
                              x_element);
  thread.second = access_along(
      {{gradient.c_per_group() * gradient.taps(), 0}, {1, gradient.dy.strides[dimension::channel] * dy_element}},
      dy_element);
  return simple_gradient_estimate(shape.threads, thread, {&gradient.x, &gradient.dy, &gradient.dw}, target, device);
}

}  // namespace
}  // namespace simple_convolution_descriptor

Algorithm simple_convolution(const std::string& template_path, const std::string& operation) {
  using namespace simple_convolution_descriptor;
  const std::string name = kernel_of(template_path);
  const auto make = [](const Request& request) { return convolution(ConvForward::of(request)); };
  return describe<Shape>(name, operation, template_path, make)
      .takes_prologue(Prologues::any, true)
      .trusted()
      .param("THREADS", &Shape::threads, {128, 256, 64})
      .rule("grid fits",
            [](const Shape& shape, const Contraction& contraction, const Target&) {
              return contraction.addresses.y.elements() / shape.threads < (int64_t{1} << 31) - 1;
            })
      .adds([](const Shape&, const Contraction& contraction, const Target&) {
        return order_on_lanes(DepthOrder{contraction.addresses.c_per_group(), contraction.addresses.taps()});
      })
      .program([name](const Shape& shape, const Contraction& contraction, const Target&, const Emitter& emit) {
        return forward_program(name, shape, contraction, emit);
      })
      .estimate(predict_forward);
}

Algorithm simple_backward_data(const std::string& template_path, const std::string& operation) {
  using namespace simple_convolution_descriptor;
  const std::string name = kernel_of(template_path);
  return describe<Shape, DataGradient>(name, operation, template_path)
      .takes_prologue()
      .trusted()
      .param("THREADS", &Shape::threads, {128, 256, 64})
      .rule("the grid fits", [](const Shape& shape, const DataGradient& gradient,
                                const Target&) { return simple_gradient_fits(shape.threads, gradient.dx); })
      .adds([](const Shape&, const DataGradient& gradient, const Target&) {
        const int64_t taps = gradient.planes.window * gradient.rows.window * gradient.columns.window;
        return order_on_lanes(DepthOrder{gradient.k_per_group(), taps, false, true});
      })
      .program([name](const Shape& shape, const DataGradient& gradient, const Target&, const Emitter& emit) {
        return data_program(name, shape, gradient, emit);
      })
      .estimate(predict_data);
}

Algorithm simple_backward_filter(const std::string& template_path, const std::string& operation) {
  using namespace simple_convolution_descriptor;
  const std::string name = kernel_of(template_path);
  return describe<Shape, FilterGradient>(name, operation, template_path)
      .takes_prologue()
      .trusted()
      .param("THREADS", &Shape::threads, {128, 256, 64})
      .rule("the grid fits", [](const Shape& shape, const FilterGradient& gradient,
                                const Target&) { return simple_gradient_fits(shape.threads, gradient.dw); })
      .program([name](const Shape& shape, const FilterGradient& gradient, const Target&, const Emitter& emit) {
        return filter_program(name, shape, gradient, emit);
      })
      .estimate(predict_filter);
}

}  // namespace kiln::descriptor
