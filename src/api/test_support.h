// What the tests of kiln/kiln.h share.
#pragma once

#include <string>

namespace kiln::api {

inline bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace kiln::api
