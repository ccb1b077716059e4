// JSON as text: one line, or indented. Whatever its strings hold, the text is ASCII and valid:
// bytes that are no UTF-8 become U+FFFD, and what a terminal would obey or hide stands as \u
// escapes.
#pragma once

#include <string>

namespace kiln {

template <class Json>
[[nodiscard]] std::string json_text(const Json& json, int indent = -1) {
  return json.dump(indent, ' ', true, Json::error_handler_t::replace);
}

}  // namespace kiln
