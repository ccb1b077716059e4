# Writes OUTPUT, a C++ source with the text of every header in HEADERS (a ;-list of names under
# INCLUDE_DIR) as string literals:
#   cmake -DOUTPUT=... -DINCLUDE_DIR=... "-DHEADERS=...;..." -P embed_headers.cmake
#
# Compilers need only take literals of 65,536 characters, so a text is cut into adjacent literals.
set(chunk_max 12000)
set(out "// Made by embed_headers.cmake.\n#include \"emit/cuda/device_headers.h\"\n\n")
string(APPEND out "namespace kiln::emit {\n\nnamespace {\n\nconst DeviceHeader kHeaders[] = {\n")
foreach(header IN LISTS HEADERS)
  file(READ "${INCLUDE_DIR}/${header}" text)
  string(LENGTH "${text}" left)
  string(APPEND out "    {\"${header}\",\n")
  set(begin 0)
  while(left GREATER 0)
    string(SUBSTRING "${text}" ${begin} ${chunk_max} chunk)
    string(LENGTH "${chunk}" taken)
    string(APPEND out "     R\"kiln_text(${chunk})kiln_text\"\n")
    math(EXPR begin "${begin} + ${taken}")
    math(EXPR left "${left} - ${taken}")
  endwhile()
  string(APPEND out "    },\n")
endforeach()
string(APPEND out "};\n\n}  // namespace\n\n")
string(APPEND out "std::span<const DeviceHeader> device_headers() { return kHeaders; }\n\n")
string(APPEND out "}  // namespace kiln::emit\n")
file(WRITE "${OUTPUT}" "${out}")
