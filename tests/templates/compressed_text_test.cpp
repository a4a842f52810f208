// The texts inside the library are those of templates/, and compressing gives back what it took.
#include "compressed_text.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>

#include "kiln/templates/catalogue.h"

namespace kiln::compressed_text_test {
namespace {

namespace fs = std::filesystem;

TEST(EmbeddedTexts, AreTheTemplatesByteForByte) {
  const SourceLibrary library = embedded_sources();
  const fs::path folder = KILN_TEMPLATES;
  int templates = 0;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    const std::string extension = entry.path().extension();
    if (extension != ".cu" && extension != ".cuh") continue;
    std::ifstream in(entry.path(), std::ios::binary);
    const std::string text{std::istreambuf_iterator<char>(in), {}};
    EXPECT_EQ(library.text(entry.path().lexically_relative(folder).generic_string()), text) << entry.path();
    ++templates;
  }
  EXPECT_GE(templates, 100);
}

std::string random_text(size_t size, char letters, unsigned seed) {
  std::mt19937 random(seed);
  std::string text(size, '\0');
  for (char& letter : text) letter = static_cast<char>(random() % static_cast<unsigned char>(letters));
  return text;
}

TEST(CompressedText, IsTheTextAgain) {
  std::string far = random_text(10, 120, 1) + random_text(farthest_match - 10, 120, 2);
  far += far.substr(0, 10) + 'x' + far.substr(0, 10);  // the farthest match, and one too far
  for (const std::string& text :
       {std::string(), std::string("a"), std::string("abcd"), std::string("abcdabcd"), std::string(3, 'a'),
        std::string(5, 'a'), std::string(18, 'a'), std::string(19, 'a'), std::string(20, 'a'), std::string(274, 'a'),
        std::string(275, 'a'), std::string(100'000, 'a'), random_text(14, 100, 3), random_text(15, 100, 4),
        random_text(16, 100, 5), random_text(270, 100, 6), random_text(271, 100, 7), random_text(20'000, 2, 8), far}) {
    EXPECT_EQ(decompressed(compressed(text)), text) << text.size() << " bytes";
  }
}

TEST(CompressedText, IsShortWhereMuchRepeats) {
  EXPECT_LE(compressed(std::string(100'000, 'a')).size(), 400u);
  const std::string line = random_text(60, 100, 9);
  EXPECT_LE(compressed(line + line + line).size(), 75u);
}

}  // namespace
}  // namespace kiln::compressed_text_test
