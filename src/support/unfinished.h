// Files that are being written under a temporary name: whoever ends the program in between can have
// them removed.
//
//   const UnfinishedFile mark(part);     from here on remove_unfinished_files() removes it
//   ... write, rename ...
#pragma once

#include <cstddef>
#include <string>

namespace kiln {

class UnfinishedFile {
 public:
  explicit UnfinishedFile(const std::string& path);
  UnfinishedFile(const UnfinishedFile&) = delete;
  UnfinishedFile& operator=(const UnfinishedFile&) = delete;
  ~UnfinishedFile();

 private:
  std::size_t slot_;
};

// Removes them all. Allocates nothing and takes no lock: for signal handlers, and for when memory
// has run out.
void remove_unfinished_files() noexcept;

}  // namespace kiln
