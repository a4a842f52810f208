// Answers of descriptors to requests, held against descriptions.txt: which algorithms serve them and why others do not,
// how many configurations each has, which of them it takes without a measurement, and its prediction. A digest stands
// for the constants and launches of a sample of them, and another one for the shapes of its open kernels. No other test
// says which algorithms serve a request and no others, and none sees most faults that only cost time: a smaller vector,
// a rule that is too strict, an estimate that is off.
//
// A difference is either a mistake or what a change was meant to do. The test leaves what it found beside its own
// program, to be compared and put in the place of the file.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "kiln/base/digest.h"
#include "kiln/templates/catalogue.h"
#include "request_suites.h"
#include "table_file.h"

namespace kiln::testing_support::descriptions_test {
namespace {

struct Place {
  const char* name;
  Target target;
  DeviceFigures figures;
};

const std::vector<Place>& places() {
  static const std::vector<Place> all = {
      {"sm_90",
       {Arch::of(9, 0), 13, 0},
       {.sms = 132, .clock_hz = 1.98e9, .dram_bytes_per_second = 4.8e12, .l2_bytes = 60 << 20}},
      {"sm_75",
       {Arch::of(7, 5), 12, 0},
       {.sms = 40, .clock_hz = 1.59e9, .dram_bytes_per_second = 3.2e11, .l2_bytes = 4 << 20}}};
  return all;
}

// Layers as they are, beside the small requests that have every operand.
constexpr const char* layers[] = {
    "conv_forward x=f32:32x64x56x56 w=f32:64x64x3x3 pad=1 epilogue=bias+relu",
    "conv_forward x=f16:32x256x14x14:nhwc w=f16:256x256x3x3:nhwc pad=1",
    "conv_forward x=f32:1x512x7x7 w=f32:512x512x3x3 pad=1",
    "conv_forward x=f16:8x3x224x224 w=f16:64x3x7x7 pad=3 stride=2",
    "conv_forward x=f32:16x96x28x28 w=f32:96x1x3x3 pad=1 groups=96",
    "conv_forward x=f16:32x144x56x56:nhwc w=f16:144x1x5x5:nhwc pad=2 groups=144 epilogue=bias+relu",
    "conv_forward x=f16:32x64x56x56:nhwc w=f16:256x64x1x1:nhwc epilogue=bias+add+relu",
    "conv_forward x=f32:8x64x56x56 w=f32:64x64x3x3 pad=1 fast",
    "conv_forward x=f32:1x256x14x14 w=f32:256x256x3x3 pad=1 fast deterministic",
    "conv_backward_data dy=f32:16x96x28x28 w=f32:96x1x3x3 dx=f32:16x96x28x28 pad=1 groups=96",
    "conv_backward_data dy=f16:32x128x28x28 w=f16:128x64x3x3 dx=f16:32x64x56x56 pad=1 stride=2",
    "conv_backward_filter x=f32:32x64x56x56 dy=f32:32x64x56x56 dw=f32:64x64x3x3 pad=1",
    "conv_backward_bias dy=f16:32x256x28x28",
    "conv_backward_filter x=f16:8x3x224x224 dy=f16:8x64x112x112 dw=f16:64x3x7x7 pad=3 stride=2",
    "conv_backward_filter x=f32:16x96x28x28 dy=f32:16x96x28x28 dw=f32:96x1x3x3 pad=1 groups=96",
    "local_conv_forward x=f32:16x16x12x12 w=f32:2304x16x3x3 pad=1",
    "local_conv_forward x=f16:4x256x6x6 w=f16:1152x256x3x3 pad=1",
    "local_conv_backward_filter x=f32:16x16x12x12 dy=f32:16x16x12x12 dw=f32:2304x16x3x3 pad=1",
    "conv_forward x=f16:32x128x28x28 w=f16:128x128x3x3 pad=1 constant_weights",
    "conv_backward_data dy=bf16:7x37x53x59:nhwc w=bf16:37x31x5x5:nhwc pad=2",
    "conv_forward x=f32:2x96x64x64 w=f32:96x1x31x31 pad=15 groups=96",
    "conv_backward_filter x=f32:8x384x14x14 dy=f32:8x384x14x14 dw=f32:384x1x13x13 pad=6 groups=384",
    "gemm a=f16:1024x1024 b=f16:1024x4096 epilogue=bias",
    "gemm a=f32:1x4096 b=f32:4096x4096",
    "gemm a=f32:1x1048576 b=f32:1048576x1",
    "gemm a=f32:2048x2048 b=f32:2048x2048:1,2048",
    "gemm a=f16:64x128x64 b=f16:64x64x128",
    "pool_forward x=f16:32x64x112x112 window=3 stride=2 pad=1",
    "pool_forward x=f32:32x2048x7x7 mode=avg window=global",
    "pool_backward dy=f16:32x64x56x56:nhwc indices=i32:32x64x56x56:nhwc dx=f16:32x64x112x112:nhwc window=2 stride=2",
    "pool_backward dy=f16:32x64x7x7:nhwc dx=f16:32x64x14x14:nhwc mode=avg window=2 stride=2",
    "pool_backward dy=f32:32x64x56x56 x=f32:32x64x112x112 window=3 stride=2 pad=1",
    "pool_backward dy=f32:8x256x20x20 x=f32:8x256x20x20 window=13 pad=6",
    "softmax_forward x=f32:4096x1000",
    "softmax_forward x=f16:8x19x128x256 axis=1",
    "softmax_forward x=f32:8x12x512x512 axis=3 mode=log",
    "softmax_forward x=f16:64x4x14x14 axis=1",
    "softmax_forward x=f16:64x8x7x7 axis=1",
    "softmax_backward y=f32:64x16x7x7 axis=1",
    "softmax_forward x=f16:2x32x16x4:4096,128,8,2 y=f16:2x32x16x4:ncwh axis=1",
    "norm_forward x=f16:4x8x16x32 y=f16:4x8x16x32:whcn axes=1",
    "softmax_backward y=f16:64x50257",
    "cross_entropy_forward x=f16:4096x32000",
    "cross_entropy_backward x=f32:256x1000",
    "activation_forward x=f16:32x64x112x112 mode=gelu",
    "activation_backward x=f32:64x4096 dy=f32:64x4096 mode=swish",
    "tensor_transform x=f16:32x64x56x56 y=f16:32x64x56x56:nhwc",
    "tensor_op a=f32:32x64x56x56 b=f32:1x64x1x1 mode=mul",
    "dropout x=f16:64x4096",
    "reduce x=f32:64x100000 axes=1",
    "reduce x=f32:4096x16 axes=1",
    "reduce x=f16:64x4x14x14 axes=1 mode=norm2",
    "reduce x=f16:4096x512 axes=0 mode=max indices=i32:1x512",
    "norm_forward x=f32:4096x8",
    "norm_forward x=f16:64x32x14x14 axes=1",
    "norm_forward x=f16:4096x1024 w=f16:1x1024 b=f16:1x1024",
    "norm_forward x=f32:32x64x56x56 axes=0,2,3 mean=f32:1x64x1x1 inv_deviation=f32:1x64x1x1",
    "norm_affine x=f16:2x32x8x64x64 w=f16:1x32x8x1x1 b=f16:1x32x8x1x1 axes=2,3,4",
    "norm_affine x=f16:1x32x4x256x256:8388608,4,1,32768,128 w=f32:1x32x4x1x1 b=f32:1x32x4x1x1 axes=2,3,4",
    "norm_inference x=f16:32x256x28x28 epilogue=add activation=relu",
    "norm_backward dy=f16:4096x1024 w=f16:1x1024 dw=f16:1x1024",
    "norm_backward dy=f32:32x64x28x28 axes=0,2,3 w=f32:1x64x1x1 dw=f32:1x64x1x1 db=f32:1x64x1x1",
    "local_norm_forward x=f16:32x64x56x56",
    "local_norm_backward x=f32:16x64x28x28 means=f32:16x64x28x28",
    "attention_forward q=f16:8x16x1024x64 k=f16:8x16x1024x64 v=f16:8x16x1024x64 right=0",
    "attention_forward q=bf16:4x32x1x128 k=bf16:4x8x4096x128 v=bf16:4x8x4096x128 lengths=i32:4",
    "attention_forward q=f16:1x128x1x576 k=f16:1x1x4096x576 v=f16:1x1x4096x512",
    "attention_forward q=f32:2x8x256x129 k=f32:2x8x256x129 v=f32:2x8x256x32 lse=f32:2x8x256",
    "attention_backward dy=f16:4x8x512x64 q=f16:4x8x512x64 k=f16:4x8x512x64 v=f16:4x8x512x64 y=f16:4x8x512x64 "
    "lse=f32:4x8x512 dk=f16:4x8x512x64 dv=f16:4x8x512x64 right=0",
    "attention_backward dy=bf16:2x8x256x256 q=bf16:2x8x256x192 k=bf16:2x2x256x192 v=bf16:2x2x256x256 "
    "y=bf16:2x8x256x256 lse=f32:2x8x256 dk=bf16:2x2x256x192 dv=bf16:2x2x256x256",
    "ctc_loss_forward x=f16:32x200x100 targets=i32:32x40 prefixes=f32:32x200x81",
    "ctc_loss_backward x=f32:2x3000x5003 targets=i32:2x2600 prefixes=f32:2x3000x5201 input=log_probabilities",
    "recurrent_forward gates=f16:32x50x1x4096 r=f16:1x4096x1024 cell=lstm",
    "recurrent_forward gates=f32:1x20x2x1536 r=f32:2x1536x512 cell=gru reset=before direction=both",
    "recurrent_backward dy=f32:8x20x1x256 r=f32:1x768x256 saved=f32:8x20x1x1024 y=f32:8x20x1x256 cell=gru",
};

// Regions whose rows no vector divides, though all of them begin where vectors do.
constexpr const char* regions[] = {
    "conv_forward x=f16:2x6x6x8:384,1,64,8 w=f16:6x6x3x3:72,1,24,8 y=f16:2x6x6x8:384,1,64,8 pad=1",
    "conv_forward x=f16:2x16x6x6:768,48,8,1 w=f16:16x16x3x3 y=f16:2x16x6x6:768,48,8,1 pad=1",
    "gemm a=f16:32x28:32,1 b=f16:28x12:16,1 c=f16:32x12:16,1",
    "pool_forward x=f16:2x6x8x8:512,1,64,8 y=f16:2x6x4x4:128,1,32,8 window=2 stride=2",
    "pool_backward dy=f16:2x6x4x4:128,1,32,8 dx=f16:2x6x8x8:512,1,64,8 mode=avg window=2 stride=2",
    "softmax_forward x=f16:8x60:64,1 y=f16:8x60:64,1",
    "softmax_backward y=f16:8x60:64,1 dy=f16:8x60:64,1 dx=f16:8x60:64,1",
    "cross_entropy_forward x=f16:16x60:64,1",
    "activation_forward x=f32:8x6:8,1 y=f32:8x6:8,1 mode=gelu",
    "activation_backward x=f16:8x12:16,1 dy=f16:8x12:16,1 dx=f16:8x12:16,1 mode=gelu",
    "tensor_transform x=f16:8x12:16,1 y=f16:8x12:16,1",
    "tensor_set y=f16:8x12:16,1",
    "tensor_op a=f16:8x12:16,1 b=f16:8x12:16,1 y=f16:8x12:16,1 mode=add",
    "dropout x=f16:8x12:16,1 y=f16:8x12:16,1",
    "reduce x=f16:64x60:64,1 axes=1",
    "norm_forward x=f16:8x60:64,1 y=f16:8x60:64,1",
    "norm_backward dy=f16:8x60:64,1 x=f16:8x60:64,1 dx=f16:8x60:64,1",
    "local_norm_forward x=f16:2x12x4x8:512,1,128,16 y=f16:2x12x4x8:512,1,128,16",
};

// Requests at an edge of what kernels serve: one element, empty tensors, alpha=0, windows and rows that are too long or
// too short. With those above they have every list of algorithms that the tests of kernels meet.
constexpr const char* edges[] = {
    "conv_backward_data dy=bf16:1x1x1x1:nchw w=bf16:1x1x1x1:nchw",
    "conv_backward_data dy=f16:1x15x8x9:nchw w=f16:15x1x3x4:nchw groups=5 pad=1,2",
    "conv_backward_data dy=f32:1x3x2x2:nchw w=f32:3x2x9x9:nchw stride=9",
    "conv_backward_filter x=f32:1x1x1x1 dy=f32:1x1x1x1 dw=f32:1x1x1x1",
    "conv_backward_filter x=f32:6x24x3x3:nhwc dy=f32:6x10x1x1 dw=f32:10x24x3x3:nhwc",
    "conv_backward_filter x=f32:0x4x6x6 dy=f32:0x8x4x4 dw=f32:8x4x3x3 beta=any",
    "conv_backward_filter x=f32:1x4x6x6 dy=f32:1x8x4x4 dw=f32:8x4x3x3 alpha=0 beta=any",
    "conv_backward_bias dy=f32:1x6x5x7 alpha=0 beta=1",
    "conv_forward x=f32:1x2x40x6:nchw w=f32:4x2x18x2:nchw dilation=2,1",
    "conv_forward x=f16:1x5x8x16:800,150,18,1 w=f16:15x1x3x5:nchw groups=5 pad=1,2 stride=2,1",
    "conv_forward x=f32:1x5x8x6:400,1,48,8 w=f32:20x1x3x5:nhwc groups=5 pad=1,2 stride=2,1 n=?",
    "conv_forward x=f32:1x1x1x1:nchw w=f32:1x1x1x1:nchw",
    "conv_forward x=f32:1x8x6x6:nchw w=f32:8x8x3x3:nchw alpha=0 beta=any epilogue=bias",
    "cross_entropy_backward x=f32:2x12x3x4:nhwc weights=f32:12 dx=f32:2x12x3x4:nchw smoothing=any",
    "gemm a=f32:1x1 b=f32:1x1",
    "gemm a=f32:34x20 b=f32:20x38 c=f32:34x38 bias=f16:38:2@2 residual=f16:34x38:1,36 epilogue=bias+add+clip",
    "gemm a=f32:0x16 b=f32:16x12",
    "local_conv_forward x=f32:2x5x6x7 w=f32:9x5x3x3 pad=1 grid=1",
    "local_conv_forward x=f32:1x4x6x6 w=f32:32x4x3x3 grid=2 alpha=0 beta=any",
    "local_conv_backward_data dy=f16:2x4x4x4 w=f16:16x3x3x3:64,20,4,1 pad=1 grid=2",
    "local_conv_backward_data dy=f32:1x1x9000 w=f32:9000x1x3",
    "local_conv_backward_data dy=f32:1x4x6x6 w=f32:16x4x3x3 grid=2 alpha=0 beta=any",
    "local_conv_backward_filter x=f32:0x4x6x6 dy=f32:0x8x4x4 dw=f32:32x4x3x3 grid=2 beta=any",
    "local_norm_forward x=f16:2x8x3x4:120,14,4,1 y=f16:2x8x3x4:nhwc",
    "local_norm_forward x=f32:0x9x4",
    "local_norm_backward x=f16:2x8x3x4:120,14,4,1 dx=f16:2x8x3x4:nhwc",
    "local_norm_backward x=f32:0x9x4",
    "norm_backward dy=f32:0x132 dw=f32:1x132",
    "norm_forward x=f32:3x0 mean=f32:3x1 inv_deviation=f32:3x1",
    "pool_forward x=f32:1x1x2x1:nchw mode=max window=1,1",
    "pool_forward x=f32:1x2x3x64:nchw mode=max window=2,40 stride=1,3",
    "pool_forward x=u8:1x2x4x33:nchw mode=max window=global",
    "reduce x=f32:0x13 indices=i32:1x13 axes=0 mode=min",
    "resize x=f32:2x3x4x5 size=1,1 mode=linear coordinates=pytorch_half_pixel",
    "softmax_backward y=f16:7x1:nc axis=1",
    "softmax_backward y=f32:3x0:nc axis=1",
    "softmax_forward x=f16:7x1:nc axis=1",
    "softmax_forward x=f32:3x0:nc axis=1",
    "softmax_forward x=f32:3x5x300:1,2000,6 y=f32:3x5x300:300,900,1 axis=2",
};

// Kiln's algorithms with templates that are empty: their sources are what descriptors say alone.
Catalogue descriptors_alone() {
  std::map<std::string, std::string> files = embedded_sources().files();
  for (auto& [path, text] : files) text.clear();
  return make_catalogue(SourceLibrary(std::move(files)));
}

// Digest of the constants, launches and workspaces of at most nine of the configurations, evenly spread.
std::string digest_of(const Catalogue& catalogue, const Request& request, const Target& target,
                      const std::vector<Candidate>& candidates) {
  std::map<std::string, Choice> sorted;
  for (const Candidate& candidate : candidates) sorted.emplace(candidate.choice.config.print(), candidate.choice);
  Digest digest;
  size_t at = 0;
  for (const auto& [config, choice] : sorted) {
    if (at++ % (1 + sorted.size() / 8) == 0) digest.add(catalogue.program(request, target, choice).digest());
  }
  return digest.hex().substr(0, 8);
}

// How many shapes the open form of an algorithm has for the request, and a digest of them; nothing if it has no form.
std::string open_shapes_of(const Catalogue& catalogue, const std::string& algorithm, const Request& request,
                           const Target& target) {
  const std::optional<Algorithm> open = catalogue.find(algorithm)->opened();
  if (!open) return "";
  const BoundAlgorithm bound = open->on(request, target);
  if (bound.refusal()) return "";
  std::set<std::string> shapes;
  for (const Config& config : bound.legal()) shapes.insert(config.print());
  Digest digest;
  for (const std::string& shape : shapes) digest.add(shape);
  return fmt::format(", {} open, {}", shapes.size(), digest.hex().substr(0, 8));
}

std::string description_of(const Catalogue& catalogue, const Request& request, const Place& place) {
  const Candidates candidates = catalogue.candidates(request, place.target, place.figures);
  std::vector<std::string> order;
  std::map<std::string, std::vector<Candidate>> by_algorithm;
  for (const Candidate& candidate : candidates.ranked) {
    std::vector<Candidate>& of = by_algorithm[candidate.choice.algorithm];
    if (of.empty()) order.push_back(candidate.choice.algorithm);
    of.push_back(candidate);
  }
  std::string text = fmt::format("{} on {}\n", request.key(), place.name);
  for (const std::string& algorithm : order) {
    const std::vector<Candidate>& of = by_algorithm[algorithm];
    double logarithms = 0;
    for (const Candidate& candidate : of) logarithms += std::log(candidate.estimate.seconds);
    text += fmt::format("  {}: {} configurations, in the mean {:.4g} us, the first {:.4g} us, {}, {}{}\n", algorithm,
                        of.size(), 1e6 * std::exp(logarithms / static_cast<double>(of.size())),
                        1e6 * of.front().estimate.seconds, of.front().choice.config.print(),
                        digest_of(catalogue, request, place.target, of),
                        open_shapes_of(catalogue, algorithm, request, place.target));
  }
  for (const Refusal& refusal : candidates.refused) {
    text += fmt::format("  not {}: {}\n", refusal.algorithm, refusal.reason);
  }
  return text;
}

TEST(Descriptions, AreThoseOfTheFile) {
  const Catalogue catalogue = descriptors_alone();
  std::vector<Request> requests = requests_with_every_operand();
  for (const char* line : layers) requests.push_back(Request::parse(line));
  for (const char* line : regions) requests.push_back(Request::parse(line));
  for (const char* line : edges) requests.push_back(Request::parse(line));
  std::string text;
  for (const Place& place : places()) {
    for (const Request& request : requests) text += description_of(catalogue, request, place);
  }
  const std::string difference = test::difference_from_table(KILN_DESCRIPTIONS, text);
  EXPECT_TRUE(difference.empty()) << "descriptors say something else now: " << difference;
}

}  // namespace
}  // namespace kiln::testing_support::descriptions_test
