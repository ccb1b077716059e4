#include "mutate.h"

#include <algorithm>
#include <optional>

#include "pieces.h"
#include "random.h"
#include "words.h"

namespace kiln::fuzz {

namespace {

// What a change may look at, and what it changes.
struct Work {
  Random& random;
  std::span<const Program> seeds;
  Program& program;
  Pieces& pieces;

  [[nodiscard]] std::size_t any() { return random.below(pieces.size() - 1); }
  [[nodiscard]] std::string draw(std::span<const std::string_view> choices) {
    return std::string(random.of(choices));
  }
};

using Test = bool (*)(const Piece&);

bool is_number(const Piece& piece) { return piece.kind == PieceKind::kNumber; }
bool is_name(const Piece& piece) { return piece.kind == PieceKind::kName; }
bool is_sign(const Piece& piece) { return piece.kind == PieceKind::kSign; }
bool is_string(const Piece& piece) { return piece.kind == PieceKind::kString; }
bool is_dtype(const Piece& piece) {
  const auto all = dtypes();
  return is_name(piece) && std::find(all.begin(), all.end(), piece.text) != all.end();
}

// A piece of the kind, chosen evenly; none if there is none.
std::optional<std::size_t> pick(Work& work, Test test) {
  std::vector<std::size_t> all;
  for (std::size_t i = 0; i + 1 < work.pieces.size(); ++i) {
    if (test(work.pieces[i])) all.push_back(i);
  }
  if (all.empty()) return std::nullopt;
  return all[work.random.below(all.size())];
}

std::ptrdiff_t offset(std::size_t at) { return static_cast<std::ptrdiff_t>(at); }

void insert_text(Work& work, std::size_t at, std::string_view text) {
  Pieces more = cut(text);
  more.pop_back();
  if (more.empty()) return;
  if (more.front().gap.empty()) more.front().gap = " ";
  work.pieces.insert(work.pieces.begin() + offset(at), more.begin(), more.end());
}

// [range) as text.
std::string text_of(const Pieces& pieces, Range range) {
  std::string out;
  for (std::size_t i = range.begin; i < range.end; ++i) out += pieces[i].gap + pieces[i].text;
  return out;
}

std::optional<Range> pick_statement(Work& work) {
  const std::vector<Range> all = statements_of(work.pieces);
  if (all.empty()) return std::nullopt;
  return all[work.random.below(all.size())];
}

void token_delete(Work& work) {
  const std::size_t at = work.any();
  erase(work.pieces, at, at + 1 + (work.random.one_in(4) ? work.random.below(4) : 0));
}

void token_duplicate(Work& work) {
  const std::size_t at = work.any();
  const Piece copy = work.pieces[at];
  work.pieces.insert(work.pieces.begin() + offset(at), copy);
}

void token_swap(Work& work) {
  const std::size_t a = work.any();
  const std::size_t b =
      work.random.one_in(2) ? work.any() : std::min(a + 1, work.pieces.size() - 2);
  std::swap(work.pieces[a].text, work.pieces[b].text);
  std::swap(work.pieces[a].kind, work.pieces[b].kind);
}

std::string dictionary_word(Work& work) {
  switch (work.random.below(6)) {
    case 0: return work.draw(signs());
    case 1: return work.draw(builtins());
    case 2: return work.draw(dtypes());
    case 3: return work.draw(numbers());
    case 4: return work.pieces[work.any()].text;
    default: return work.draw(words());
  }
}

void token_insert(Work& work) { insert_text(work, work.any(), dictionary_word(work)); }

void token_replace(Work& work) {
  const std::size_t at = work.any();
  work.pieces[at].text = dictionary_word(work);
}

void statement_delete(Work& work) {
  if (const auto range = pick_statement(work)) erase(work.pieces, range->begin, range->end);
}

void statement_duplicate(Work& work) {
  const auto range = pick_statement(work);
  if (range) insert_text(work, range->begin, text_of(work.pieces, *range));
}

void statement_swap(Work& work) {
  const auto a = pick_statement(work);
  const auto b = pick_statement(work);
  if (!a || !b) return;
  const Range first = a->begin < b->begin ? *a : *b;
  const Range second = a->begin < b->begin ? *b : *a;
  if (first.end > second.begin) return;
  const std::string texts[] = {text_of(work.pieces, first), text_of(work.pieces, second)};
  erase(work.pieces, second.begin, second.end);
  insert_text(work, second.begin, texts[0]);
  erase(work.pieces, first.begin, first.end);
  insert_text(work, first.begin, texts[1]);
}

// Also into a block or out of it: the place is any other statement's.
void statement_move(Work& work) {
  const auto from = pick_statement(work);
  if (!from) return;
  const std::string text = text_of(work.pieces, *from);
  erase(work.pieces, from->begin, from->end);
  if (const auto to = pick_statement(work)) insert_text(work, to->begin, text);
}

void statement_insert(Work& work) {
  if (const auto at = pick_statement(work)) insert_text(work, at->begin, work.draw(statements()));
}

// A statement of another program.
void statement_splice(Work& work) {
  const Program& other = work.seeds[work.random.below(work.seeds.size())];
  const Pieces pieces = cut(other.text);
  const std::vector<Range> all = statements_of(pieces);
  const auto at = pick_statement(work);
  if (all.empty() || !at) return;
  const Range range = all[work.random.below(all.size())];
  if (range.end - range.begin <= 200) insert_text(work, at->begin, text_of(pieces, range));
}

void statement_wrap(Work& work) {
  const auto range = pick_statement(work);
  if (!range) return;
  const std::size_t levels = work.random.one_in(6) ? 2 + work.random.below(12) : 1;
  std::string text;
  for (std::size_t level = 0; level < levels; ++level) text += work.draw(openings()) + " ";
  text += text_of(work.pieces, *range);
  for (std::size_t level = 0; level < levels; ++level) text += " }";
  erase(work.pieces, range->begin, range->end);
  insert_text(work, range->begin, text);
}

// Takes a block's head and brackets away, or only its brackets.
void statement_unwrap(Work& work) {
  const auto range = pick_statement(work);
  if (!range || work.pieces[range->end - 1].text != "}") return;
  std::size_t open = range->begin;
  while (open < range->end && work.pieces[open].text != "{") ++open;
  erase(work.pieces, range->end - 1, range->end);
  erase(work.pieces, work.random.one_in(4) ? open : range->begin, open + 1);
}

std::string changed_number(Work& work, const std::string& text) {
  std::uint64_t value = 0;
  bool whole = !text.empty() && text.size() < 19;
  for (const char c : text) {
    whole = whole && c >= '0' && c <= '9';
    if (whole) value = value * 10 + static_cast<std::uint64_t>(c - '0');
  }
  const std::size_t how = work.random.below(whole ? 8 : 2);
  switch (how) {
    case 0:
    case 1: return work.draw(numbers());
    case 2: return std::to_string(value + 1);
    case 3: return std::to_string(value == 0 ? 1 : value - 1);
    case 4: return std::to_string(value * 2);
    case 5: return std::to_string(value / 2);
    case 6: return std::to_string(std::uint64_t{1} << work.random.below(64));
    default: break;
  }
  const auto other = pick(work, is_number);
  return other ? work.pieces[*other].text : "0";
}

void number(Work& work) {
  const auto at = pick(work, is_number);
  if (at) work.pieces[*at].text = changed_number(work, work.pieces[*at].text);
}

void dtype(Work& work) {
  const auto at = pick(work, is_dtype);
  if (!at) return;
  const std::string old = work.pieces[*at].text;
  const std::string replaced = work.draw(dtypes());
  const bool everywhere = work.random.one_in(3);
  for (Piece& piece : work.pieces) {
    if (everywhere && piece.text == old) piece.text = replaced;
  }
  work.pieces[*at].text = replaced;
}

void name(Work& work) {
  const auto at = pick(work, is_name);
  const auto other = pick(work, is_name);
  if (!at) return;
  const bool builtin = work.random.one_in(8);
  work.pieces[*at].text = builtin ? work.draw(builtins()) : work.pieces[*other].text;
}

// One name becomes another everywhere: one of the program's, of C++, or of CUDA.
void rename(Work& work) {
  const auto at = pick(work, is_name);
  const auto other = pick(work, is_name);
  if (!at) return;
  const std::string old = work.pieces[*at].text;
  const std::string replaced =
      work.random.one_in(3) ? work.pieces[*other].text : work.draw(foreign_names());
  for (Piece& piece : work.pieces) {
    if (is_name(piece) && piece.text == old) piece.text = replaced;
  }
}

void operation(Work& work) {
  const auto at = pick(work, is_sign);
  if (at) work.pieces[*at].text = work.draw(signs());
}

void suffix_insert(Work& work) {
  const auto at = pick(work, is_name);
  if (!at) return;
  const std::size_t before = work.pieces.size();
  insert_text(work, *at + 1, work.draw(suffixes()));
  if (work.pieces.size() > before) work.pieces[*at + 1].gap.clear();
}

// `.word`, with what it has in brackets.
void suffix_delete(Work& work) {
  const auto at = pick(work, [](const Piece& piece) { return piece.text == "."; });
  if (!at) return;
  std::size_t end = std::min(*at + 2, work.pieces.size() - 1);
  if (work.pieces[end].text == "(") end = past_bracket(work.pieces, end);
  if (work.pieces[end].text == "<" && work.pieces.size() > end + 3) end += 3;
  erase(work.pieces, *at, end);
}

// Two arguments of one list change places, or one goes, or one is said twice.
void argument(Work& work) {
  const auto comma = pick(work, [](const Piece& piece) { return piece.text == ","; });
  if (!comma || *comma == 0 || *comma + 2 >= work.pieces.size()) return;
  Piece& left = work.pieces[*comma - 1];
  Piece& right = work.pieces[*comma + 1];
  switch (work.random.below(3)) {
    case 0: std::swap(left.text, right.text); break;
    case 1: right.text = left.text; break;
    default: erase(work.pieces, *comma, *comma + 2); break;
  }
}

// A name where a number stood, a number where a name stood, an expression where either.
void operand(Work& work) {
  const auto at = pick(work, [](const Piece& piece) { return is_name(piece) || is_number(piece); });
  const auto variable = pick(work, is_name);
  if (!at || !variable) return;
  Piece& piece = work.pieces[*at];
  if (work.random.one_in(3)) {
    const std::string sign = work.draw(signs());
    piece.text = "(" + piece.text + " " + sign + " " + work.draw(numbers()) + ")";
  } else {
    piece.text = is_name(piece) ? work.draw(numbers()) : work.pieces[*variable].text;
  }
}

// Bytes that are no text of a program, in a string where there is one.
void bytes(Work& work) {
  constexpr std::string_view kBytes[] = {
      "\x1b[31m", "\xc2\x9b", "\xe2\x80\xae", "*/",   "\\",        "\"",   "\n",    "\r",
      "\t",       "%s",       "{}",           "\xff", "</script>", "<!--", "R\"x(", "\?\?/"};
  const auto string = pick(work, is_string);
  std::string& text = work.pieces[string && !work.random.one_in(4) ? *string : work.any()].text;
  text.insert(work.random.below(text.size() + 1), std::string(work.random.of(std::span(kBytes))));
}

void directive(Work& work) {
  constexpr std::string_view kLines[] = {"#line 5 \"a.co\"\n",
                                         "#line 2147483647\n",
                                         "#define f16 f32\n",
                                         "#define M 16\n",
                                         "#if 1\n",
                                         "#else\n",
                                         "#endif\n",
                                         "#undef M\n",
                                         "#define a(x) a(x) a(x)\n",
                                         "#pragma croq x\n",
                                         "#error \"x\"\n",
                                         "#include \"m.co\"\n",
                                         "#include <a>\n",
                                         "#define sync\n",
                                         "#elif 1 / 0\n"};
  if (const auto at = pick_statement(work)) {
    work.pieces[at->begin].gap = "\n" + std::string(work.random.of(std::span(kLines))) + "\n";
  }
}

void command_line(Work& work) {
  Program& program = work.program;
  if (!program.defines.empty() && work.random.one_in(2)) {
    std::string& define = program.defines[work.random.below(program.defines.size())];
    const std::size_t equal = define.find('=');
    if (equal != std::string::npos) define = define.substr(0, equal + 1) + work.draw(numbers());
    return;
  }
  program.arch = work.draw(archs());
}

struct Change {
  std::string_view name;
  unsigned weight;
  void (*apply)(Work&);
};

constexpr Change kChanges[] = {
    {"token-delete", 4, token_delete},
    {"token-duplicate", 2, token_duplicate},
    {"token-swap", 3, token_swap},
    {"token-insert", 3, token_insert},
    {"token-replace", 3, token_replace},
    {"statement-delete", 6, statement_delete},
    {"statement-duplicate", 5, statement_duplicate},
    {"statement-swap", 4, statement_swap},
    {"statement-move", 6, statement_move},
    {"statement-insert", 4, statement_insert},
    {"statement-splice", 6, statement_splice},
    {"statement-wrap", 6, statement_wrap},
    {"statement-unwrap", 3, statement_unwrap},
    {"number", 16, number},
    {"dtype", 8, dtype},
    {"name", 8, name},
    {"rename", 5, rename},
    {"operator", 4, operation},
    {"suffix-insert", 5, suffix_insert},
    {"suffix-delete", 4, suffix_delete},
    {"argument", 4, argument},
    {"operand", 6, operand},
    {"bytes", 1, bytes},
    {"directive", 2, directive},
    {"command-line", 4, command_line},
};

const Change& choose(Random& random) {
  std::size_t all = 0;
  for (const Change& change : kChanges) all += change.weight;
  std::size_t left = random.below(all);
  for (const Change& change : kChanges) {
    if (left < change.weight) return change;
    left -= change.weight;
  }
  return kChanges[0];
}

std::size_t change_count(Random& random) {
  const std::size_t draw = random.below(10);
  if (draw < 5) return 1;
  return draw < 8 ? 2 : 3 + random.below(4);
}

// A program that is refused as it stands seldom becomes one that is not: fewer of those.
const Program& draw_seed(std::span<const Program> seeds, Random& random) {
  const Program* seed = &seeds[random.below(seeds.size())];
  const auto refused = [](const std::string& name) {
    return name.find("/fail_") != std::string::npos ||
           (name.starts_with("tests/mistakes/") && !name.starts_with("tests/mistakes/base/"));
  };
  for (int redraws = 2; redraws != 0 && refused(seed->name); --redraws) {
    seed = &seeds[random.below(seeds.size())];
  }
  return *seed;
}

}  // namespace

Mutant make_mutant(std::span<const Program> seeds, std::uint64_t seed, std::uint64_t index) {
  Random random(seed, index);
  const Program& origin = draw_seed(seeds, random);
  Mutant mutant{.program = origin, .how = origin.name + ":"};
  Pieces pieces = cut(origin.text);
  for (std::size_t left = change_count(random); left != 0 && pieces.size() > 1; --left) {
    const Change& change = choose(random);
    Work work{random, seeds, mutant.program, pieces};
    change.apply(work);
    mutant.how += " " + std::string(change.name);
    // A changed piece may be several pieces now.
    mutant.program.text = join(pieces);
    pieces = cut(mutant.program.text);
  }
  return mutant;
}

}  // namespace kiln::fuzz
