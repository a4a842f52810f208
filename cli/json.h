// A JSON value that a command prints: a thin wrapper of nlohmann's, whose header takes longer to compile than most
// commands do. Only json.cpp and sources that read JSON include it.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <map>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace kiln::cli {

class Json {
 public:
  Json(std::nullptr_t null = nullptr);
  Json(bool value);
  Json(int value);
  Json(unsigned value);
  Json(int64_t value);
  Json(uint64_t value);
  Json(double value);
  Json(const char* text);
  Json(std::string_view text);
  Json(const std::string& text);
  template <class Element>
  Json(const std::vector<Element>& elements) : Json(array()) {
    for (const Element& element : elements) push_back(element);
  }
  Json(const std::set<std::string>& elements);
  Json(const std::map<std::string, int64_t>& members);
  /// An object where each element is a pair that begins with text, `{{"name", name}, {"count", 3}}`; else an array.
  Json(std::initializer_list<Json> elements);
  explicit Json(nlohmann::ordered_json value);
  Json(const Json& other);
  Json(Json&& other) noexcept;
  Json& operator=(Json other) noexcept;
  ~Json();

  static Json array();
  static Json object();
  /// REQUIRES: text that this program wrote.
  static Json parse(const std::string& text);

  void push_back(const Json& element);
  /// Adds a member to an object, behind the others. Nothing becomes an object so.
  void set(const std::string& name, const Json& member);
  /// Takes a member out, if there is one.
  void erase(const std::string& name);
  /// Elements of an array.
  size_t size() const;
  /// For whoever reads it.
  const nlohmann::ordered_json& value() const { return *value_; }
  /// In lines that are indented by so many blanks a level, or in one line. Text that is not UTF-8 (a compiler's, a
  /// file's) is mended.
  std::string text(int indent) const;
  std::string line() const;

 private:
  std::unique_ptr<nlohmann::ordered_json> value_;
};

}  // namespace kiln::cli
