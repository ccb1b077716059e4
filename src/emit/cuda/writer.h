// Lines of C++ with indentation, and #line directives where the compiler's count would go astray.
//
//   writer.at({"a.co", 7, 1});      #line 7 "a.co"
//   writer.line("x = 1;");          x = 1;
//   writer.line("y = 2;");          y = 2;            the compiler counts it as line 8,
//   writer.at({"a.co", 9, 1});                        so that line 9 needs no directive
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "support/source.h"

namespace kiln::emit {

class Writer {
 public:
  explicit Writer(bool line_directives) : line_directives_(line_directives) {}

  // The following lines come from this place of the user's source.
  void at(const Place& place);
  void line(std::string_view text);
  // A call as a statement, its arguments on further lines where one is too short.
  void call(std::string_view function, const std::vector<std::string>& arguments);
  // A line that ends in an opening brace, and the brace that closes it.
  void open(std::string_view text);
  void close(std::string_view text = "}");
  // A line that closes one block and opens the next: "} else {".
  void between(std::string_view text);
  // Text of the program's own, which may open and close blocks by itself.
  void splice(std::string_view text);

  // A block of the text: what is declared in it is known until it is closed.
  using Block = std::size_t;
  [[nodiscard]] Block block() const { return blocks_.back(); }
  [[nodiscard]] bool is_open(Block block) const;

  [[nodiscard]] const std::string& text() const { return text_; }

 private:
  void open_block() { blocks_.push_back(++blocks_so_far_); }
  void close_block();

  std::string text_;
  int depth_ = 0;
  std::vector<Block> blocks_ = {0};  // innermost last
  Block blocks_so_far_ = 0;
  bool line_directives_;
  std::string file_;        // as the compiler presumes it
  std::int64_t line_ = -1;  // of the next line
};

}  // namespace kiln::emit
