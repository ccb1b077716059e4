#include "programs/shrink.h"

#include <functional>

#include "programs/farm.h"

namespace kiln::programs {

namespace {

// A place in the tree, as the numbers of children from the root.
using Path = std::vector<std::size_t>;

Node* find(Node& root, const Path& path) {
  Node* at = &root;
  for (const std::size_t step : path) {
    if (step >= at->body.size()) return nullptr;
    auto child = at->body.begin();
    std::advance(child, static_cast<std::ptrdiff_t>(step));
    at = &*child;
  }
  return at;
}

void collect(const Node& node, Path& here, std::vector<Path>& out) {
  std::size_t i = 0;
  for (const Node& each : node.body) {
    here.push_back(i++);
    out.push_back(here);
    collect(each, here, out);
    here.pop_back();
  }
}

Node* parent_of(Node& root, const Path& path) {
  return find(root, Path(path.begin(), path.end() - 1));
}

bool leave_out(Node& root, const Path& path) {
  Node* parent = parent_of(root, path);
  if (parent == nullptr || path.back() >= parent->body.size()) return false;
  auto at = parent->body.begin();
  std::advance(at, static_cast<std::ptrdiff_t>(path.back()));
  parent->body.erase(at);
  return true;
}

bool unwrap(Node& root, const Path& path) {
  Node* parent = parent_of(root, path);
  if (parent == nullptr || path.back() >= parent->body.size()) return false;
  auto at = parent->body.begin();
  std::advance(at, static_cast<std::ptrdiff_t>(path.back()));
  if (!at->has_body || at->body.empty()) return false;
  parent->body.splice(at, at->body);
  parent->body.erase(at);
  return true;
}

// The end of what the bracket at `open` begins.
std::size_t closing(const std::string& text, std::size_t open) {
  int depth = 0;
  for (std::size_t i = open; i < text.size(); ++i) {
    if (text[i] == '(') ++depth;
    if (text[i] == ')' && --depth == 0) return i;
  }
  return std::string::npos;
}

// The statement with one bracketed expression replaced by a part of it, for each way to do so.
std::vector<std::string> simpler(const std::string& text) {
  std::vector<std::string> out;
  const std::size_t equal = text.find(" = ");
  for (std::size_t i = equal == std::string::npos ? 0 : equal; i < text.size(); ++i) {
    if (text[i] != '(') continue;
    const std::size_t end = closing(text, i);
    if (end == std::string::npos) return out;
    int depth = 0;
    std::size_t from = i + 1;
    for (std::size_t j = i + 1; j <= end; ++j) {
      if (text[j] == '(') ++depth;
      if (text[j] == ')') --depth;
      const bool cut = depth <= 0 && (text[j] == ' ' || text[j] == ',' || j == end);
      if (!cut) continue;
      if (j > from + 1 || (j > from && std::isalnum(static_cast<unsigned char>(text[from])) != 0)) {
        out.push_back(text.substr(0, i) + "(" + text.substr(from, j - from) + ")" +
                      text.substr(end + 1));
      }
      from = j + 1;
    }
  }
  return out;
}

class Shrinker {
 public:
  Shrinker(Sample sample, const Verdict& verdict, const ShrinkOptions& options)
      : best_(std::move(sample)), verdict_(verdict), options_(options) {}

  Sample run() {
    bool smaller = true;
    while (smaller && tries_ < options_.tries_max) {
      smaller = pass(leave_out) || pass(unwrap) || simplify() || drop_params();
    }
    return best_;
  }

 private:
  // Whether the sample still disagrees in the same way; then it is the best one.
  bool accept(const Sample& sample) {
    if (++tries_ > options_.tries_max) return false;
    const Verdict seen = evaluate_apart(sample, options_.evaluate, options_.seconds_max);
    if (seen.kind != verdict_.kind || seen.what != verdict_.what) return false;
    best_ = sample;
    return true;
  }

  bool pass(bool (*change)(Node&, const Path&)) {
    std::vector<Path> paths;
    Path here;
    collect(best_.function, here, paths);
    bool any = false;
    // From the end, so that places before it stay what they are.
    for (auto path = paths.rbegin(); path != paths.rend(); ++path) {
      Sample candidate = best_;
      if (change(candidate.function, *path)) any = accept(candidate) || any;
    }
    return any;
  }

  bool simplify() {
    std::vector<Path> paths;
    Path here;
    collect(best_.function, here, paths);
    for (const Path& path : paths) {
      for (const std::string& text : simpler(find(best_.function, path)->text)) {
        Sample candidate = best_;
        find(candidate.function, path)->text = text;
        if (accept(candidate)) return true;
      }
    }
    return false;
  }

  bool drop_params() {
    bool any = false;
    for (std::size_t i = best_.params.size(); i-- > 0;) {
      Sample candidate = best_;
      candidate.params.erase(candidate.params.begin() + static_cast<std::ptrdiff_t>(i));
      std::erase_if(candidate.shape, [&](const io::Assignment& each) {
        return text(candidate).find(each.name) == std::string::npos;
      });
      any = accept(candidate) || any;
    }
    return any;
  }

  Sample best_;
  const Verdict& verdict_;
  const ShrinkOptions& options_;
  int tries_ = 0;
};

}  // namespace

Sample shrink(Sample sample, const Verdict& verdict, const ShrinkOptions& options) {
  return Shrinker(std::move(sample), verdict, options).run();
}

}  // namespace kiln::programs
