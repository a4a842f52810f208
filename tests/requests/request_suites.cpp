#include "request_suites.h"

#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>

namespace kiln::testing_support {
namespace {

std::vector<Request> read(const char* file) {
  const std::string path = std::string(KILN_SOURCE_DIR "/") + file;
  std::ifstream stream(path);
  if (!stream) throw std::runtime_error(path + " cannot be read");
  const std::string text(std::istreambuf_iterator<char>(stream), {});
  std::vector<Request> requests;
  for (RequestLine& line : parse_requests(text)) requests.push_back(std::move(line.request));
  return requests;
}

}  // namespace

const std::vector<Request>& one_of_each() {
  static const std::vector<Request> requests = read("examples/requests/one_of_each.txt");
  return requests;
}

const std::vector<Request>& awkward_requests() {
  static const std::vector<Request> requests = read("tests/requests/awkward.txt");
  return requests;
}

const std::vector<Request>& requests_with_every_operand() {
  static const std::vector<Request> requests = read("tests/requests/every_operand.txt");
  return requests;
}

const std::vector<Request>& requests_beyond_32_bits() {
  static const std::vector<Request> requests = read("tests/requests/beyond_32_bits.txt");
  return requests;
}

const std::vector<Request>& all_requests() {
  static const std::vector<Request> requests = [] {
    std::vector<Request> all;
    for (const auto* suite : {&one_of_each(), &requests_with_every_operand(), &awkward_requests()}) {
      all.insert(all.end(), suite->begin(), suite->end());
    }
    return all;
  }();
  return requests;
}

}  // namespace kiln::testing_support
