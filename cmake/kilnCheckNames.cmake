# cmake -DHEADERS=a.co.h;b.co.h -DTARGET=app -P kilnCheckNames.cmake
#
# Fails where two of the headers that `kiln emit --header` made declare functions of one name in C.
cmake_minimum_required(VERSION 3.16)
set(names)
foreach(header IN LISTS HEADERS)
  file(STRINGS ${header} lines REGEX "^(// [^ ]+ of .*:[0-9]+|kiln_status launch_)")
  foreach(line IN LISTS lines)
    if(line MATCHES "^// ([^ ]+) of (.*:[0-9]+)$")
      set(kernel ${CMAKE_MATCH_1})
      set(place ${CMAKE_MATCH_2})
    elseif(line MATCHES "^kiln_status (launch_[A-Za-z0-9_]+)")
      set(name ${CMAKE_MATCH_1})
      if(name IN_LIST names)
        message(FATAL_ERROR
          "target `${TARGET}` has two kernels of one name: `${kernel}` at ${place}, and at ${place_of_${name}}; "
          "both are `${name}` in C. Rename one, or add its file by a call of its own with "
          "kiln_add_kernels(... NAMESPACE name)")
      endif()
      list(APPEND names ${name})
      set(place_of_${name} ${place})
    endif()
  endforeach()
endforeach()
