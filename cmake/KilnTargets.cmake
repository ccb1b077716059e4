# kiln_library(NAME [HOT] [REINTERPRETS] [READS] SOURCES... DEPS...) and
# kiln_test(NAME [HOT] SOURCES... ALONE... DEPS...): one library and one test program per folder, all built with
# the same options.
#
# HOT is for a library whose loops run for seconds (the simulator) or in each call of kiln/gemm.h. What a
# program of a hundred lines passes through in milliseconds gets -O1: it compiles in two thirds of the time
# of -O2. REINTERPRETS is for a library that reads bytes as wider numbers (reinterpret_cast): only there can
# a pointer be misaligned, so only there, and in tests, do the sanitizers check it. READS is for a library that
# takes foreign bytes apart: its branches are counted for the programs of libFuzzer (KILN_LIBFUZZER).
#
# The files of a library are compiled thirty at a time, or TOGETHER says how many, and those of a test ten at a
# time (KILN_UNITY), so that what they include is read once. ALONE names a test that has a helper of the same
# name as another test of its program, and is compiled by itself.

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
  # Half a gigabyte before it collects garbage: an eighth less time, for a fourth more memory.
  target_compile_options(kiln_options INTERFACE --param=ggc-min-heapsize=500000)
endif()
if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
  target_compile_options(kiln_options INTERFACE -Wno-sign-conversion)  # no part of g++'s -Wconversion
endif()
if(KILN_WARNINGS_AS_ERRORS)
  target_compile_options(kiln_options INTERFACE -Werror)
endif()
target_include_directories(kiln_options INTERFACE
  ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}/include ${PROJECT_BINARY_DIR}/generated)
target_compile_definitions(kiln_options INTERFACE KILN_VERSION="${PROJECT_VERSION}" JSON_NOEXCEPTION=1)
if(KILN_SANITIZE)
  target_compile_options(kiln_options INTERFACE
    -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer
    # Not vptr: the libraries have no RTTI. Not null and object-size: AddressSanitizer stops at such an
    # access too, and these checks, before every access, are two fifths of what a sanitized build costs.
    -fno-sanitize=vptr,null,object-size
    $<$<NOT:$<BOOL:$<TARGET_PROPERTY:KILN_REINTERPRETS>>>:-fno-sanitize=alignment>)
  target_link_options(kiln_options INTERFACE -fsanitize=address,undefined)
  if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
    # The functions of the CUDA driver are called by types of our own.
    target_compile_options(kiln_options INTERFACE -fno-sanitize=function)
  endif()
endif()
if(KILN_SANITIZE_THREADS)
  target_compile_options(kiln_options INTERFACE -fsanitize=thread -fno-omit-frame-pointer)
  target_link_options(kiln_options INTERFACE -fsanitize=thread)
endif()
if(KILN_LIBFUZZER)
  target_compile_options(kiln_options INTERFACE
    $<$<BOOL:$<TARGET_PROPERTY:KILN_READS>>:-fsanitize=fuzzer-no-link>)
endif()

function(kiln_compile_together name files)
  set_target_properties(${name} PROPERTIES UNITY_BUILD ${KILN_UNITY} UNITY_BUILD_BATCH_SIZE ${files})
endfunction()

function(kiln_library name)
  cmake_parse_arguments(ARG "HOT;REINTERPRETS;READS" "TOGETHER" "SOURCES;DEPS" ${ARGN})
  if(NOT ARG_TOGETHER)
    set(ARG_TOGETHER 30)
  endif()
  add_library(${name} STATIC ${ARG_SOURCES})
  target_link_libraries(${name} PUBLIC kiln_options ${ARG_DEPS})
  set_target_properties(${name} PROPERTIES
    KILN_REINTERPRETS "${ARG_REINTERPRETS}" KILN_READS "${ARG_READS}")
  target_compile_options(${name} PRIVATE -fno-exceptions -fno-rtti)
  if(NOT ARG_HOT)
    target_compile_options(${name} PRIVATE $<$<CONFIG:Release>:-O1>)
  endif()
  kiln_compile_together(${name} ${ARG_TOGETHER})
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

# How the sanitizers of a test are asked to work. A library of clang's, as glibc 2.19 laid out the variables of a
# thread, takes two words before them for their place where they begin 16 bytes into a page, and the search for leaks
# then reads an address that is none ("Tracer caught signal 11"). Without intercept_tls_get_addr it does not ask:
# variables of libraries opened at run time are found as what they are, memory of malloc.
function(kiln_test_environment name)
  if(KILN_SANITIZE)
    set_tests_properties(${name} PROPERTIES ENVIRONMENT
      "ASAN_OPTIONS=exitcode=99:detect_stack_use_after_return=0:intercept_tls_get_addr=0;UBSAN_OPTIONS=exitcode=99:print_stacktrace=1")
  endif()
endfunction()

function(kiln_test name)
  if(NOT KILN_TESTS)
    return()
  endif()
  cmake_parse_arguments(ARG "HOT" "" "SOURCES;ALONE;DEPS" ${ARGN})
  find_package(GTest REQUIRED)
  add_executable(${name} ${ARG_SOURCES} ${ARG_ALONE})
  kiln_compile_together(${name} 10)
  set_source_files_properties(${ARG_ALONE} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
  target_link_libraries(${name} PRIVATE kiln_options ${ARG_DEPS} GTest::gtest GTest::gtest_main)
  # A test calls a library, which is optimised; its own lines run once. HOT: they go through all values of something.
  # Some compile headers of the device for this CPU, and those move vectors of 16 bytes.
  if(NOT ARG_HOT)
    target_compile_options(${name} PRIVATE $<$<CONFIG:Debug>:-O0> $<$<CONFIG:Release>:-O1>)
  endif()
  set_target_properties(${name} PROPERTIES KILN_REINTERPRETS ON)
  add_test(NAME ${name} COMMAND ${name})
  set_tests_properties(${name} PROPERTIES LABELS unit)  # asked for by tests/tools/changed.py
  kiln_test_environment(${name})
endfunction()

if(KILN_TESTS)
  enable_testing()
endif()

# kiln_c_test(NAME SOURCE): a program in C11, or in C++, that uses the shared library as a user's does.
function(kiln_c_test name source)
  if(NOT KILN_TESTS)
    return()
  endif()
  add_executable(${name} ${source})
  set_target_properties(${name} PROPERTIES C_STANDARD 11 C_STANDARD_REQUIRED ON C_EXTENSIONS OFF)
  target_compile_options(${name} PRIVATE -Wall -Wextra -Wpedantic -Werror)
  target_link_libraries(${name} PRIVATE kiln_shared)
  if(KILN_SANITIZE)
    target_link_options(${name} PRIVATE -fsanitize=address,undefined)  # before the library's
  endif()
  add_test(NAME ${name} COMMAND ${name})
  kiln_test_environment(${name})
endfunction()

# kiln_use_fake_cuda(TEST [COUNTS_MALLOC]): the test finds the driver of paper, src/gemm/fake_cuda.cpp,
# where it looks for CUDA's. With COUNTS_MALLOC it can count the library's allocations.
function(kiln_use_fake_cuda test)
  cmake_parse_arguments(ARG "COUNTS_MALLOC" "" "" ${ARGN})
  set_target_properties(${test} PROPERTIES
    BUILD_RPATH $<TARGET_PROPERTY:fake_cuda,LIBRARY_OUTPUT_DIRECTORY>)
  # The older tag counts for whoever calls dlopen: under sanitizers that is their library.
  target_link_options(${test} PRIVATE -Wl,--disable-new-dtags)
  add_dependencies(${test} fake_cuda)
  # Its C++ library is its own, so that wrapping malloc counts what `new` takes. The sanitizers'
  # `new` is another one.
  if(ARG_COUNTS_MALLOC AND NOT KILN_SANITIZE AND NOT KILN_SANITIZE_THREADS)
    target_link_options(${test} PRIVATE -static-libstdc++ -Wl,--wrap=malloc)
    target_compile_definitions(${test} PRIVATE KILN_COUNTS_MALLOC)
  endif()
endfunction()
