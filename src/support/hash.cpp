#include "support/hash.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "support/format.h"

namespace kiln {

std::string Digest::hex() const { return format("{:016x}{:016x}", high, low); }

Digest digest(std::string_view bytes) {
  const XXH128_hash_t hash = XXH3_128bits(bytes.data(), bytes.size());
  return {.high = hash.high64, .low = hash.low64};
}

Digest digest_of_parts(std::span<const std::string_view> parts) {
  std::string list;
  for (const std::string_view part : parts)
    list += format("{} {}\n", part.size(), digest(part).hex());
  return digest(list);
}

}  // namespace kiln
