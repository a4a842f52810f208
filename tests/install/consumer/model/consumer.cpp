// Softmax of four equal values by a model in a file: 0.25 each. Before that, errors that cross two boundaries.
#include <kiln/model.h>

#include <array>
#include <cstdio>
#include <fstream>
#include <kiln/kiln.hpp>
#include <span>
#include <string>

namespace {

template <class Call>
bool throws(kiln::ErrorCode code, const Call& call) {
  try {
    call();
    return false;
  } catch (const kiln::Error& error) {
    return error.code() == code;
  }
}

int run(const std::string& path) {
  kiln::Context context;
  // Errors of the library of models; and of the other one, through it.
  if (!throws(kiln::ErrorCode::io_error, [&] { kiln::Model(context, "no/such/file.onnx"); })) return 2;
  kiln::ContextOptions nothing_known;
  nothing_known.locked = true;
  kiln::Context locked(nothing_known);
  if (!throws(kiln::ErrorCode::unsupported, [&] { kiln::Model(locked, path); })) return 3;

  kiln::Model model(context, path, {.batch = 2});
  std::array<float, 8> values{1, 1, 1, 1, 1, 1, 1, 1};
  kiln::DeviceMemory x(context, sizeof values), y(context, sizeof values);
  x.upload(std::as_bytes(std::span(values)));
  model.run({{"x", kiln::Tensor(x.data(), kiln::f32, {2, 4}, kiln::nc)}},
            {{"y", kiln::Tensor(y.data(), kiln::f32, {2, 4}, kiln::nc)}});
  y.download(std::as_writable_bytes(std::span(values)));
  // The plan of a model's step is one that the context knows: both libraries work on the same contexts.
  const std::string variant = context.plan(model.steps().front().request).variant();
  if (variant != model.steps().front().variant) return 4;
  std::printf("kiln %s: %g %g %g %g\n", kiln::version().data(), values[4], values[5], values[6], values[7]);
  return 0;
}

}  // namespace

int main(int, char** arguments) {
  try {
    return run(arguments[1]);
  } catch (const kiln::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
