// Source text and places in it.
//
// A Span is a half-open range of byte offsets in one file: `{file, 12, 17}` covers bytes 12 to 16.
// Lines and columns are counted from 1, columns in bytes. `#line` directives move the *presumed*
// place that diagnostics show; spans stay physical.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "support/ids.h"

namespace kiln {

struct FileTag;
using FileId = Id<FileTag>;

struct Span {
  FileId file;
  std::uint32_t begin = 0;
  std::uint32_t end = 0;

  [[nodiscard]] bool valid() const { return file.valid(); }
  friend auto operator<=>(const Span&, const Span&) = default;
};

// The smallest span that covers both; they must lie in one file (else `a` is returned).
[[nodiscard]] Span cover(Span a, Span b);

struct Place {
  std::string file;  // as `#line` presumes it
  std::int64_t line = 0;
  std::int64_t column = 0;
};

class Sources {
 public:
  FileId add(std::string name, std::string text);

  [[nodiscard]] std::string_view name(FileId file) const;
  [[nodiscard]] std::string_view text(FileId file) const;
  [[nodiscard]] std::string_view text(Span span) const;

  // Physical line number (from 1) of a byte offset, and that line's text without its newline.
  [[nodiscard]] std::int64_t line_of(FileId file, std::uint32_t offset) const;
  [[nodiscard]] std::uint32_t line_begin(FileId file, std::int64_t line) const;
  [[nodiscard]] std::string_view line_text(FileId file, std::int64_t line) const;

  // From physical line `after_line` + 1 on, the file presents itself as `name` (empty: unchanged)
  // at line `presumed_line`. Calls must come in ascending order.
  void presume(FileId file, std::int64_t after_line, std::int64_t presumed_line, std::string name);
  [[nodiscard]] Place place(FileId file, std::uint32_t offset) const;
  [[nodiscard]] Place place(Span span) const { return place(span.file, span.begin); }

 private:
  struct Presumption {
    std::int64_t after_line;
    std::int64_t presumed_line;
    std::string name;
  };
  struct File {
    std::string name;
    std::string text;
    std::vector<std::uint32_t> line_begins;
    std::vector<Presumption> presumptions;
  };
  // Texts stay where they are: tokens point into them.
  IdVector<FileId, File, std::deque<File>> files_;
};

}  // namespace kiln
