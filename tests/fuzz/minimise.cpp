#include "minimise.h"

#include <algorithm>

#include "pieces.h"

namespace kiln::fuzz {

namespace {

class Minimiser {
 public:
  Minimiser(Program program, std::uint64_t draw, const std::string& failure, Crew& crew, int tries)
      : best_(std::move(program)), draw_(draw), failure_(failure), crew_(crew), left_(tries) {}

  Program run() {
    drop_options();
    std::size_t before = 0;
    do {
      before = best_.text.size();
      drop_statements();
      drop_pieces();
    } while (best_.text.size() < before && left_ > 0);
    tidy();
    return std::move(best_);
  }

 private:
  // Keeps the candidate when it still fails in the same way.
  bool keep(Program candidate) {
    if (left_ <= 0) return false;
    --left_;
    if (failure_of(candidate, draw_, crew_) != failure_) return false;
    best_ = std::move(candidate);
    return true;
  }

  bool keep_pieces(const Pieces& pieces) {
    Program candidate = best_;
    candidate.text = join(pieces);
    return candidate.text.size() < best_.text.size() && keep(std::move(candidate));
  }

  void drop_options() {
    Program plain = best_;
    plain.shapes.clear();
    plain.included.clear();
    plain.defines.clear();
    if (keep(std::move(plain))) return;
    for (std::size_t i = best_.defines.size(); i-- > 0;) {
      Program candidate = best_;
      candidate.defines.erase(candidate.defines.begin() + static_cast<std::ptrdiff_t>(i));
      keep(std::move(candidate));
    }
  }

  // Whole statements, the largest first.
  void drop_statements() {
    std::size_t skip = 0;
    while (left_ > 0) {
      Pieces pieces = cut(best_.text);
      std::vector<Range> all = statements_of(pieces);
      std::stable_sort(all.begin(), all.end(),
                       [](Range a, Range b) { return a.end - a.begin > b.end - b.begin; });
      if (skip >= all.size()) return;
      erase(pieces, all[skip].begin, all[skip].end);
      if (!keep_pieces(pieces)) ++skip;
    }
  }

  // Runs of pieces, half as long each time.
  void drop_pieces() {
    for (std::size_t length = cut(best_.text).size() / 2; length > 0 && left_ > 0; length /= 2) {
      std::size_t at = 0;
      while (left_ > 0) {
        Pieces pieces = cut(best_.text);
        if (at + 1 >= pieces.size()) break;
        erase(pieces, at, at + length);
        if (!keep_pieces(pieces)) at += length;
      }
    }
  }

  // Comments and space that nothing needs.
  void tidy() {
    Pieces pieces = cut(best_.text);
    for (Piece& piece : pieces) {
      const bool line = piece.gap.find('\n') != std::string::npos;
      piece.gap = line ? "\n" : piece.gap.empty() ? "" : " ";
    }
    pieces.back().gap = "\n";
    Program candidate = best_;
    candidate.text = join(pieces);
    left_ = std::max(left_, 1);
    keep(std::move(candidate));
  }

  Program best_;
  std::uint64_t draw_;
  const std::string& failure_;
  Crew& crew_;
  int left_;
};

}  // namespace

std::string failure_of(const Program& program, std::uint64_t draw, Crew& crew) {
  crew.submit({.draw = draw, .program = program});
  return crew.next().failure;
}

Program minimise(Program program, std::uint64_t draw, const std::string& failure, Crew& crew,
                 int tries) {
  return Minimiser(std::move(program), draw, failure, crew, tries).run();
}

}  // namespace kiln::fuzz
