#include "programs/outline.h"

#include <algorithm>
#include <cctype>

namespace kiln::programs {

namespace {

bool is_of_a_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

// The words of the text that are no parts of numbers, each once.
std::vector<std::string> words_of(const std::string& text) {
  std::vector<std::string> out;
  for (std::size_t at = 0; at < text.size();) {
    std::size_t end = at;
    const bool number = std::isdigit(static_cast<unsigned char>(text[at])) != 0;
    while (end < text.size() && (is_of_a_word(text[end]) || (number && text[end] == '.'))) ++end;
    const std::string word = text.substr(at, end - at);
    if (end > at && !number && std::ranges::find(out, word) == out.end()) out.push_back(word);
    at = std::max(end, at + 1);
  }
  return out;
}

// What means the same everywhere.
bool is_of_the_language(const std::string& word) {
  constexpr std::string_view kWords[] = {"frag", "fill", "store", "inf", "true", "false"};
  return word.starts_with("__") || dtype_from_name(word).has_value() ||
         std::ranges::find(kWords, word) != std::end(kWords);
}

// A tile, or any tile, or one of an extent that has a name.
std::string parameter(Gen& gen, const TileValue& tile, std::string& before) {
  const std::string& name = tile.value.text;
  const int kind = gen.draw.within(0, 9);
  if (kind < 3 || !tile.anchored || !tile.typed) return format("frag {}", name);
  std::string rows = format("{}", tile.shape.rows);
  std::string type(kiln::name(tile.value.type));
  if (kind < 5) rows = gen.name("R");
  if (kind == 5 && before.empty()) {
    type = gen.name("T");
    before = format("template <type {}>\n", type);
  }
  return format("frag {} [{}, {}] {}", type, rows, tile.shape.cols, name);
}

}  // namespace

void Outlined::add(const std::string& parameter, const std::string& argument) {
  for (const auto& [list, part] : {std::pair{&head, &parameter}, {&call, &argument}}) {
    const bool first = list->ends_with("()");
    list->insert(list->size() - 1, (first ? "" : ", ") + *part);
  }
}

std::optional<Outlined> outlined(Gen& gen, const Names& names, const std::string& text) {
  const std::string name = gen.name("give");
  Outlined out{.before = {}, .head = name + "()", .call = name + "()"};
  for (const std::string& word : words_of(text)) {
    const auto tile = std::ranges::find_if(
        names.tiles, [&](const TileValue& each) { return each.value.text == word; });
    const Window& window = names.window;
    if (tile != names.tiles.end()) {
      out.add(parameter(gen, *tile, out.before), word);
    } else if (word == window.col || word == window.block_row || word == window.unit) {
      out.add("int " + word, word);
    } else if (!is_of_the_language(word)) {
      return std::nullopt;
    }
  }
  return out;
}

}  // namespace kiln::programs
