#include "json.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

namespace kiln::cli {
namespace {

using Value = nlohmann::ordered_json;

bool is_member(const Json& element) {
  return element.value().is_array() && element.value().size() == 2 && element.value()[0].is_string();
}

}  // namespace

Json::Json(Value value) : value_(std::make_unique<Value>(std::move(value))) {}
Json::Json(std::nullptr_t) : Json(Value()) {}
Json::Json(bool value) : Json(Value(value)) {}
Json::Json(int value) : Json(Value(value)) {}
Json::Json(unsigned value) : Json(Value(value)) {}
Json::Json(int64_t value) : Json(Value(value)) {}
Json::Json(uint64_t value) : Json(Value(value)) {}
Json::Json(double value) : Json(Value(value)) {}
Json::Json(const char* text) : Json(Value(text)) {}
Json::Json(std::string_view text) : Json(Value(text)) {}
Json::Json(const std::string& text) : Json(Value(text)) {}
Json::Json(const std::set<std::string>& elements) : Json(Value(elements)) {}
Json::Json(const std::map<std::string, int64_t>& members) : Json(Value(members)) {}

Json::Json(std::initializer_list<Json> elements) : Json(array()) {
  const bool is_object = std::all_of(elements.begin(), elements.end(), is_member);
  if (is_object) *value_ = Value::object();
  for (const Json& element : elements) {
    if (is_object)
      set(element.value()[0].get<std::string>(), Json(element.value()[1]));
    else
      push_back(element);
  }
}

Json::Json(const Json& other) : Json(other.value()) {}
Json::Json(Json&& other) noexcept = default;
Json& Json::operator=(Json other) noexcept {
  value_ = std::move(other.value_);
  return *this;
}
Json::~Json() = default;

Json Json::array() {
  return Json(Value::array());
}

Json Json::object() {
  return Json(Value::object());
}

Json Json::parse(const std::string& text) {
  return Json(Value::parse(text));
}

void Json::push_back(const Json& element) {
  value_->push_back(element.value());
}

void Json::set(const std::string& name, const Json& member) {
  (*value_)[name] = member.value();
}

void Json::erase(const std::string& name) {
  value_->erase(name);
}

size_t Json::size() const {
  return value_->size();
}

std::string Json::text(int indent) const {
  return value_->dump(indent, ' ', false, Value::error_handler_t::replace);
}

std::string Json::line() const {
  return text(-1);
}

}  // namespace kiln::cli
