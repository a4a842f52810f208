#include "request.h"

#include <fmt/format.h>

#include <utility>

#include "boundary.h"
#include "kiln/base/error.h"

namespace kiln::capi {

std::vector<Request> requests_of(const char* text, std::string_view function) {
  require(text, function, "requests");
  std::vector<Request> requests;
  for (RequestLine& line : parse_requests(text)) requests.push_back(std::move(line.request));
  return requests;
}

Request request_of(const char* text, std::string_view function) {
  require(text, function, "request");
  std::vector<Request> requests = requests_of(text, function);
  if (requests.size() == 1) return std::move(requests.front());
  throw Error(ErrorCode::invalid_argument,
              fmt::format("{}: {} requests were given, expected 1", function, requests.size()),
              "give one line as docs/request-syntax.md describes it");
}

}  // namespace kiln::capi
