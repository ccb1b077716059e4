// 128-bit digests of bytes: names for contents, and proof that bytes are what was written.
//
//   digest("").hex() == "99aa06d3014798d86001c324468d497f"
//
// XXH3, from xxHash, which is included in hash.cpp alone and compiled into it. Not cryptographic:
// it tells accidents, and nobody who sets out to make two inputs collide.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace kiln {

struct Digest {
  std::uint64_t high = 0;
  std::uint64_t low = 0;

  friend bool operator==(const Digest&, const Digest&) = default;
  [[nodiscard]] std::string hex() const;  // 32 digits
};

[[nodiscard]] Digest digest(std::string_view bytes);

// Of a list: ("ab", "c") differs from ("a", "bc").
[[nodiscard]] Digest digest_of_parts(std::span<const std::string_view> parts);

}  // namespace kiln
