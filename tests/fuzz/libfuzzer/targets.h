// Readers of foreign bytes, each as a function that must come back whatever it is given.
//
//   for (const Target& target : targets()) target.read("any bytes");
//
// entry.cpp makes one of them a libFuzzer program; replay_test.cpp gives all of them what earlier
// runs found.
#pragma once

#include <span>
#include <string_view>

namespace kiln::fuzz {

void read_lexer(std::string_view bytes);
void read_preprocessor(std::string_view bytes);
void read_parser(std::string_view bytes);
void read_ir(std::string_view bytes);
void read_npy(std::string_view bytes);
void read_einsum(std::string_view bytes);
void read_tuned(std::string_view bytes);
void read_layout(std::string_view bytes);
void read_options(std::string_view bytes);

struct Target {
  std::string_view name;  // of its folder in tests/fuzz/corpus
  void (*read)(std::string_view bytes);
};

inline constexpr Target kTargets[] = {
    {"lexer", read_lexer},     {"preprocessor", read_preprocessor},
    {"parser", read_parser},   {"ir", read_ir},
    {"npy", read_npy},         {"einsum", read_einsum},
    {"tuned", read_tuned},     {"layout", read_layout},
    {"options", read_options},
};

}  // namespace kiln::fuzz
