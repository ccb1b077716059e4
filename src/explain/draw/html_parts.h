// Pieces of HTML that the pages of `kiln map` and `kiln explain` share.
#pragma once

#include <string>
#include <string_view>

#include "explain/draw/picture.h"

namespace kiln::explain {

// Up to <style>, and the style of pictures; rules may follow.
[[nodiscard]] std::string page_head(const std::string& title);

// The box that picks an owner (html_page.h).
[[nodiscard]] std::string search_form(const OwnerNames& owners);

// The legend, and the grids in an element of the page.
[[nodiscard]] std::string picture_html(const Picture& picture, std::string_view element);

}  // namespace kiln::explain
