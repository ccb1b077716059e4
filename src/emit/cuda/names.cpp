#include "emit/cuda/names.h"

#include "emit/cuda/reserved.h"
#include "support/format.h"

namespace kiln::emit {

namespace {

constexpr bool is_word(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || is_digit(c) || c == '_';
}

}  // namespace

std::string word_of(std::string_view text) {
  std::string out;
  for (const char c : text) out += is_word(c) ? c : '_';
  if (out.empty() || is_digit(out[0])) out = "v" + out;
  // Names that begin with two underscores, or one and a capital letter, belong to the compiler.
  return out[0] == '_' ? "v" + out : out;
}

namespace {

// The word with an underscore behind it where it is taken, or with a letter in front where it
// belongs to a family of names that all are ("cudaSuccess").
template <class IsTaken>
std::string untaken(const std::string& word, IsTaken is_taken) {
  if (!is_taken(word)) return word;
  return is_taken(word + "_") ? "v_" + word : word + "_";
}

}  // namespace

std::string legal_name(std::string_view name) { return untaken(word_of(name), is_reserved); }

std::string kernel_name(std::string_view name) {
  return untaken(word_of(name),
                 [](std::string_view word) { return is_reserved(word) || is_global(word); });
}

std::string launcher_name(std::string_view kernel) { return format("launch_{}", kernel); }

namespace {

// `wanted`, or the first of wanted_2, wanted_3 that is free.
template <class IsFree>
std::string first_free(const std::string& wanted, IsFree is_free) {
  std::string name = wanted;
  for (int n = 2; !is_free(name); ++n) name = format("{}_{}", wanted, n);
  return name;
}

}  // namespace

std::string NameTable::claim(std::string_view wanted) {
  std::string name = first_free(legal_name(wanted), [&](const std::string& candidate) {
    return !is_reserved(candidate) && !taken_.contains(candidate);
  });
  taken_.insert(name);
  return name;
}

bool NameTable::keep(const std::string& name) {
  return taken_.insert(name).second && legal_name(name) == name;
}

std::string NameTable::claim_kernel(std::string_view wanted) {
  std::string name = first_free(kernel_name(wanted), [&](const std::string& candidate) {
    return !is_reserved(candidate) && !is_global(candidate) && !taken_.contains(candidate) &&
           !taken_.contains(launcher_name(candidate));
  });
  taken_.insert(name);
  taken_.insert(launcher_name(name));
  return name;
}

}  // namespace kiln::emit
