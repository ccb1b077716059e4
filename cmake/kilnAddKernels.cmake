# kiln_add_kernels(TARGET app
#                  FILES attention.co norm.co
#                  [ARCHS sm_90a sm_80] [DEFINES STAGES=3 ...] [INCLUDES folder ...] [NAMESPACE my]
#                  [AHEAD auto|nvrtc|nvcc|no])
#
# Makes functions of the target out of `.co` files: for each a header, `#include "attention.co.h"`, which
# the target finds, and a source that is compiled into it. The target is linked with kiln::kiln.
# Kernels are compiled when the target is built, where NVRTC or nvcc is there, else when they are first
# called. Two files of a target may have kernels of one name if NAMESPACE keeps them apart. What a file includes is watched as the file itself. Without ARCHS: for this machine's GPU, else
# the newest architecture that kiln knows.
cmake_policy(PUSH)
cmake_policy(VERSION 3.22)  # whatever the project says: of depfiles

function(kiln_add_kernels)
  cmake_parse_arguments(ARG "" "TARGET;AHEAD;NAMESPACE" "FILES;ARCHS;DEFINES;INCLUDES" ${ARGN})
  if(ARG_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "kiln_add_kernels: unknown arguments: ${ARG_UNPARSED_ARGUMENTS}")
  endif()
  if(NOT ARG_FILES)
    message(FATAL_ERROR "kiln_add_kernels: no FILES are named")
  endif()
  if(NOT ARG_TARGET OR NOT TARGET ${ARG_TARGET})
    message(FATAL_ERROR "kiln_add_kernels: TARGET `${ARG_TARGET}` is no target of this project")
  endif()
  set(options)
  if(ARG_ARCHS)
    list(JOIN ARG_ARCHS "," archs)
    list(APPEND options --arch ${archs})
  endif()
  foreach(define IN LISTS ARG_DEFINES)
    list(APPEND options -D ${define})
  endforeach()
  foreach(folder IN LISTS ARG_INCLUDES)
    get_filename_component(folder ${folder} ABSOLUTE BASE_DIR ${CMAKE_CURRENT_SOURCE_DIR})
    list(APPEND options -I ${folder})
  endforeach()
  if(NOT "${ARG_AHEAD}" STREQUAL "")  # "no" is a value
    list(APPEND options --ahead ${ARG_AHEAD})
  endif()
  if(ARG_NAMESPACE)
    list(APPEND options --namespace ${ARG_NAMESPACE})
  endif()
  # C serves both languages; a project without C compiles the source as C++.
  get_property(languages GLOBAL PROPERTY ENABLED_LANGUAGES)
  set(suffix c)
  if(NOT C IN_LIST languages)
    set(suffix cpp)
  endif()
  set(folder ${CMAKE_CURRENT_BINARY_DIR}/kiln_kernels/${ARG_TARGET})
  file(MAKE_DIRECTORY ${folder})
  foreach(file IN LISTS ARG_FILES)
    get_filename_component(path ${file} ABSOLUTE BASE_DIR ${CMAKE_CURRENT_SOURCE_DIR})
    get_filename_component(name ${path} NAME)
    get_property(known TARGET ${ARG_TARGET} PROPERTY KILN_KERNELS)
    if(name IN_LIST known)
      message(FATAL_ERROR "kiln_add_kernels: target `${ARG_TARGET}` has a file `${name}` already; "
                          "the header's name is made of it")
    endif()
    set_property(TARGET ${ARG_TARGET} APPEND PROPERTY KILN_KERNELS ${name})
    add_custom_command(
      OUTPUT ${folder}/${name}.h ${folder}/${name}.${suffix}
      COMMAND kiln::command emit ${path} ${options} --header ${folder}/${name}.h
              --source ${folder}/${name}.${suffix} --depfile ${folder}/${name}.d
      DEPENDS ${path} kiln::command
      DEPFILE ${folder}/${name}.d
      COMMENT "Compiling ${name} with kiln"
      VERBATIM)
    target_sources(${ARG_TARGET} PRIVATE ${folder}/${name}.h ${folder}/${name}.${suffix})
  endforeach()
  # Names of C are the target's: those of this call's files beside those of earlier calls.
  get_property(known TARGET ${ARG_TARGET} PROPERTY KILN_KERNELS)
  list(LENGTH known count)
  list(TRANSFORM known PREPEND ${folder}/)
  list(TRANSFORM known APPEND .h)
  add_custom_command(
    OUTPUT ${folder}/names_${count}.checked
    COMMAND ${CMAKE_COMMAND} "-DHEADERS=${known}" -DTARGET=${ARG_TARGET}
            -P ${CMAKE_CURRENT_FUNCTION_LIST_DIR}/kilnCheckNames.cmake
    COMMAND ${CMAKE_COMMAND} -E touch ${folder}/names_${count}.checked
    DEPENDS ${known}
    COMMENT "Comparing names of kernels"
    VERBATIM)
  target_sources(${ARG_TARGET} PRIVATE ${folder}/names_${count}.checked)
  # As properties, so that the target may be linked with and without keywords.
  set_property(TARGET ${ARG_TARGET} APPEND PROPERTY INCLUDE_DIRECTORIES ${folder})
  set_property(TARGET ${ARG_TARGET} APPEND PROPERTY LINK_LIBRARIES kiln::kiln)
  get_target_property(type ${ARG_TARGET} TYPE)
  if(type STREQUAL "STATIC_LIBRARY" OR type STREQUAL "OBJECT_LIBRARY")
    # Whoever links the target links kiln.
    set_property(TARGET ${ARG_TARGET} APPEND PROPERTY
      INTERFACE_LINK_LIBRARIES $<LINK_ONLY:kiln::kiln>)
  endif()
endfunction()

cmake_policy(POP)
