// Prints include/kiln/device/atoms.cuh.
#include <cstdio>
#include <string>

#include "emit/cuda/atoms_header.h"

int main() {
  const std::string text = kiln::emit::atoms_header();
  return std::fwrite(text.data(), 1, text.size(), stdout) == text.size() ? 0 : 1;
}
