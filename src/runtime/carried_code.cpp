#include "runtime/carried_code.h"

#include <map>
#include <shared_mutex>

#include "support/format.h"

namespace kiln::runtime {

namespace {

struct Carried {
  std::shared_mutex mutex;
  std::map<std::string, std::string, std::less<>> codes;  // by key
};

// Never destroyed: what ends the process may still compile.
Carried& carried() {
  static auto* const all = new Carried;
  return *all;
}

}  // namespace

Digest code_key(const CompileRequest& request) {
  const std::string options =
      join(request.options, "\n", [](const std::string& option) { return option; });
  std::vector<std::string_view> parts = {"carried", KILN_VERSION, request.text, request.file_name,
                                         options};
  for (const emit::DeviceHeader& header : request.headers) {
    parts.emplace_back(header.name);
    parts.emplace_back(header.text);
  }
  return digest_of_parts(parts);
}

void carry(const std::string& key, std::string_view bytes) {
  Carried& all = carried();
  const std::unique_lock lock(all.mutex);
  all.codes.emplace(key, bytes);
}

std::optional<std::string> find_carried(const CompileRequest& request) {
  Carried& all = carried();
  const std::shared_lock lock(all.mutex);
  if (all.codes.empty()) return std::nullopt;
  const auto found = all.codes.find(code_key(request).hex());
  if (found == all.codes.end()) return std::nullopt;
  return found->second;
}

}  // namespace kiln::runtime
