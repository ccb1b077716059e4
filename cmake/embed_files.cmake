# Writes OUTPUT, a C++ source with the text of every file in FILES (a ;-list of names under FOLDER) as
# string literals, as the array of the interface that the header INTERFACE declares:
#
#   cmake -DOUTPUT=... -DFOLDER=... "-DFILES=...;..." -DINTERFACE=emit/cuda/device_headers.h
#         -DNAMESPACE=kiln::emit -DTYPE=DeviceHeader -DFUNCTION=device_headers -P embed_files.cmake
#
#   struct DeviceHeader { const char* name; const char* text; };
#   std::span<const DeviceHeader> device_headers();
#
# Compilers need only take literals of 65,536 characters, so a text is cut into adjacent literals.
set(chunk_max 12000)
set(out "// Made by embed_files.cmake.\n#include \"${INTERFACE}\"\n\n")
string(APPEND out "namespace ${NAMESPACE} {\n\nnamespace {\n\nconst ${TYPE} kFiles[] = {\n")
foreach(file IN LISTS FILES)
  file(READ "${FOLDER}/${file}" text)
  string(LENGTH "${text}" left)
  string(APPEND out "    {\"${file}\",\n")
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
string(APPEND out "std::span<const ${TYPE}> ${FUNCTION}() { return kFiles; }\n\n")
string(APPEND out "}  // namespace ${NAMESPACE}\n")
file(WRITE "${OUTPUT}" "${out}")
