# kiln_library(NAME [BRIEF] SOURCES... DEPS...) and kiln_test(NAME SOURCES... DEPS...): one library and
# one test program per folder, all built with the same options. BRIEF is for what is done in the time
# that a program of a hundred lines takes (milliseconds): the second level of optimisation costs more
# there than it will ever give back.

if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release)
endif()

add_library(kiln_options INTERFACE)
target_compile_features(kiln_options INTERFACE cxx_std_20)
target_compile_options(kiln_options INTERFACE
  -Wall -Wextra -Wconversion -Wswitch-enum)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # GCC 12 warns falsely about std::string's operator+ (its bug 105651) and, with optimisation, about
  # optional members of a struct (its bug 80635).
  target_compile_options(kiln_options INTERFACE -Wno-restrict -Wno-maybe-uninitialized)
endif()
if(KILN_WARNINGS_AS_ERRORS)
  target_compile_options(kiln_options INTERFACE -Werror)
endif()
target_include_directories(kiln_options INTERFACE
  ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}/include ${PROJECT_BINARY_DIR}/generated)
target_compile_definitions(kiln_options INTERFACE KILN_VERSION="${PROJECT_VERSION}" JSON_NOEXCEPTION=1)
if(KILN_SANITIZE)
  target_compile_options(kiln_options INTERFACE
    # Not vptr: the libraries have no RTTI.
    -fsanitize=address,undefined -fno-sanitize=vptr -fno-sanitize-recover=all -fno-omit-frame-pointer)
  target_link_options(kiln_options INTERFACE -fsanitize=address,undefined)
endif()
if(KILN_SANITIZE_THREADS)
  target_compile_options(kiln_options INTERFACE -fsanitize=thread -fno-omit-frame-pointer)
  target_link_options(kiln_options INTERFACE -fsanitize=thread)
endif()
if(KILN_LIBFUZZER)
  target_compile_options(kiln_options INTERFACE -fsanitize=fuzzer-no-link)  # tells which branches ran
endif()

function(kiln_library name)
  cmake_parse_arguments(ARG "BRIEF" "" "SOURCES;DEPS" ${ARGN})
  add_library(${name} STATIC ${ARG_SOURCES})
  target_link_libraries(${name} PUBLIC kiln_options ${ARG_DEPS})
  target_compile_options(${name} PRIVATE -fno-exceptions -fno-rtti)
  if(ARG_BRIEF)
    target_compile_options(${name} PRIVATE $<$<CONFIG:Release>:-O1>)
  endif()
  # What ten files include is read once. Not for tests: each of theirs may have helpers of one name.
  set_target_properties(${name} PROPERTIES UNITY_BUILD ${KILN_UNITY} UNITY_BUILD_BATCH_SIZE 10)
  # They are parts of a shared library too, which shows nothing but its public functions.
  set_target_properties(${name} PROPERTIES
    POSITION_INDEPENDENT_CODE ON CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON)
endfunction()

# kiln_embed(OUTPUT FOLDER... FILES... INTERFACE... NAMESPACE... TYPE... FUNCTION...): makes a source
# with the text of files; see embed_files.cmake.
set(KILN_EMBED_SCRIPT ${CMAKE_CURRENT_LIST_DIR}/embed_files.cmake)
function(kiln_embed output)
  cmake_parse_arguments(ARG "" "FOLDER;INTERFACE;NAMESPACE;TYPE;FUNCTION" "FILES" ${ARGN})
  list(TRANSFORM ARG_FILES PREPEND ${ARG_FOLDER}/ OUTPUT_VARIABLE paths)
  add_custom_command(
    OUTPUT ${output}
    COMMAND ${CMAKE_COMMAND} -DOUTPUT=${output} -DFOLDER=${ARG_FOLDER} "-DFILES=${ARG_FILES}"
            -DINTERFACE=${ARG_INTERFACE} -DNAMESPACE=${ARG_NAMESPACE} -DTYPE=${ARG_TYPE}
            -DFUNCTION=${ARG_FUNCTION} -P ${KILN_EMBED_SCRIPT}
    DEPENDS ${paths} ${KILN_EMBED_SCRIPT}
    VERBATIM)
endfunction()

function(kiln_test name)
  if(NOT KILN_TESTS)
    return()
  endif()
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPS" ${ARGN})
  find_package(GTest REQUIRED)
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE kiln_options ${ARG_DEPS} GTest::gtest GTest::gtest_main)
  add_test(NAME ${name} COMMAND ${name})
  set_tests_properties(${name} PROPERTIES LABELS unit)  # asked for by tests/tools/changed.py
endfunction()

if(KILN_TESTS)
  enable_testing()
endif()
