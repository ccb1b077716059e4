#include "runtime/cached_compile.h"

#include "runtime/library.h"

namespace kiln::runtime {

namespace {

// An NVRTC: releases of one version differ in the library's size.
struct Toolkit {
  std::string version;
  std::string path;
  std::string state;  // of the file

  [[nodiscard]] std::string text() const {
    return format("{} {}", version, state.substr(0, state.find(' ')));
  }
};

// Opening NVRTC takes as long as all of a warm load may. So which one a search found is kept in the
// cache too, by all that decides the search, and holds as long as the file is as it was.
Digest search_key() {
  const std::string state = search_state(nvrtc_names());
  const std::string_view parts[] = {"which NVRTC", state};
  return digest_of_parts(parts);
}

std::optional<Toolkit> known_toolkit(const Cache& cache) {
  const auto text = cache.find(search_key());
  if (!text) return std::nullopt;
  const std::size_t first = text->find('\n');
  const std::size_t second = text->find('\n', first + 1);
  if (second == std::string::npos) return std::nullopt;
  Toolkit toolkit{.version = text->substr(0, first),
                  .path = text->substr(second + 1),
                  .state = text->substr(first + 1, second - first - 1)};
  if (file_state(toolkit.path) != toolkit.state) return std::nullopt;
  return toolkit;
}

Result<Toolkit> open_toolkit() {
  const Result<NvrtcFile> found = find_nvrtc();
  if (!found) return Unexpected{found.error()};
  return Toolkit{.version = found->version, .path = found->path, .state = file_state(found->path)};
}

// One that cannot be remembered is opened again next time.
void remember(const Cache& cache, const Toolkit& toolkit) {
  if (toolkit.state.empty()) return;
  const auto stored =
      cache.store(search_key(), format("{}\n{}\n{}", toolkit.version, toolkit.state, toolkit.path));
  static_cast<void>(stored);
}

std::optional<Compiled> find_compiled(const CompileRequest& request, const Cache& cache,
                                      const Toolkit& toolkit) {
  auto bytes = cache.find(compile_key(request, toolkit.text()));
  if (!bytes) return std::nullopt;
  return Compiled{.cubin = {.bytes = std::move(*bytes), .log = {}, .version = toolkit.version},
                  .cached = true,
                  .kept = true,
                  .note = {}};
}

}  // namespace

Digest compile_key(const CompileRequest& request, std::string_view toolkit) {
  const std::string options =
      join(request.options, "\n", [](const std::string& option) { return option; });
  std::vector<std::string_view> parts = {"kernel",     KILN_VERSION,      toolkit,
                                         request.text, request.file_name, options};
  for (const emit::DeviceHeader& header : request.headers) {
    parts.emplace_back(header.name);
    parts.emplace_back(header.text);
  }
  return digest_of_parts(parts);
}

Result<Compiled> compile_cached(const CompileRequest& request, const Cache& cache, CacheUse use) {
  const bool find = cache.on() && use == CacheUse::kFindAndStore;
  const auto known = find ? known_toolkit(cache) : std::nullopt;
  if (known) {
    if (auto found = find_compiled(request, cache, *known)) return std::move(*found);
  }
  // From here on the NVRTC that is really there gives the name.
  const Result<Toolkit> toolkit = open_toolkit();
  if (!toolkit) return Unexpected{toolkit.error()};
  remember(cache, *toolkit);
  if (find) {
    if (auto found = find_compiled(request, cache, *toolkit)) return std::move(*found);
  }
  CompileRequest what = request;
  what.anew = use == CacheUse::kStoreOnly;
  Result<Cubin> cubin = compile(what);
  if (!cubin) return Unexpected{cubin.error()};
  const auto kept = cache.store(compile_key(request, toolkit->text()), cubin->bytes);
  return Compiled{.cubin = std::move(*cubin),
                  .cached = false,
                  .kept = cache.on() && kept,
                  .note = kept ? "" : kept.error().text()};
}

}  // namespace kiln::runtime
