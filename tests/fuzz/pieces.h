// A program's text cut into pieces that a mutation moves about: tokens, each with the white space
// and comments before it. Joined again they are the text to the byte.
//
//   join(cut("a = b; // x\n"))    "a = b; // x\n", from `a`, ` =`, ` b`, `;`, ` // x\n`
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace kiln::fuzz {

enum class PieceKind : unsigned char { kName, kNumber, kString, kSign, kEnd };

struct Piece {
  PieceKind kind = PieceKind::kSign;
  std::string gap;   // what stands before it
  std::string text;  // empty for kEnd, which only has a gap
};

using Pieces = std::vector<Piece>;

[[nodiscard]] Pieces cut(std::string_view text);
[[nodiscard]] std::string join(const Pieces& pieces);

// Takes [begin, end) out. A line's end before them stays, so that a directive still ends there.
void erase(Pieces& pieces, std::size_t begin, std::size_t end);

// Statements as ranges of pieces: up to a `;`, or to the `}` that closes their block.
struct Range {
  std::size_t begin = 0;
  std::size_t end = 0;
};
[[nodiscard]] std::vector<Range> statements_of(const Pieces& pieces);

// The piece after the bracket that closes the one at `at`; the last piece when nothing closes it.
[[nodiscard]] std::size_t past_bracket(const Pieces& pieces, std::size_t at);

}  // namespace kiln::fuzz
