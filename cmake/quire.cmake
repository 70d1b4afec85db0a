# Flags that every target has, and the three functions that the folders use.
#
# -ffp-contract=off and no fast-math: a rounding happens where the source says so, with any
# compiler. FMA stands only where a kernel writes it.

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

find_package(Threads REQUIRED)
find_package(PkgConfig REQUIRED)
find_program(CCACHE ccache)
if(CCACHE)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CCACHE})
endif()

add_library(quire_flags INTERFACE)
target_compile_options(quire_flags INTERFACE
  -Wall -Wextra -Wshadow -Wnon-virtual-dtor -Werror -ffp-contract=off -fno-fast-math
  -fno-omit-frame-pointer -fvisibility=hidden -fstrict-aliasing)
target_include_directories(quire_flags INTERFACE ${CMAKE_SOURCE_DIR}/src)
target_link_libraries(quire_flags INTERFACE Threads::Threads)
# Highway's targets: portable code (its scalar target), AVX2 with FMA and F16C, AVX-512. Others are
# disabled so that they cost no compile time; base/instruction_set.h picks one at start. The scalar
# target serves as the portable one with every compiler (GCC before 12.3 miscompiles the other).
target_compile_definitions(quire_flags INTERFACE
  HWY_DISABLED_TARGETS=\(HWY_SSSE3|HWY_SSE4|HWY_AVX3_DL\) HWY_BROKEN_EMU128=1)
# GCC 12 and 13 see overlaps in std::string that are not there (its bug 105651).
if(CMAKE_CXX_COMPILER_ID STREQUAL GNU)
  target_compile_options(quire_flags INTERFACE -Wno-restrict)
endif()
if(QUIRE_SANITIZE)
  target_compile_definitions(quire_flags INTERFACE QUIRE_SANITIZED)
  target_compile_options(quire_flags INTERFACE
    -fsanitize=${QUIRE_SANITIZE} -fno-sanitize-recover=all -g1)
  target_link_options(quire_flags INTERFACE -fsanitize=${QUIRE_SANITIZE})
  # GCC warns that the thread sanitizer does not see fences; Asio has some.
  if(QUIRE_SANITIZE STREQUAL thread AND CMAKE_CXX_COMPILER_ID STREQUAL GNU)
    target_compile_options(quire_flags INTERFACE -Wno-tsan)
  endif()
endif()

# quire_library(base SOURCES a.cc ... DEPS lib ...): the static library of one folder. DEPS are
# public; tools/check_layers.py checks that includes agree with the layer table.
function(quire_library name)
  cmake_parse_arguments(arg "" "" "SOURCES;DEPS" ${ARGN})
  add_library(quire_${name} STATIC ${arg_SOURCES})
  target_link_libraries(quire_${name} PUBLIC quire_flags ${arg_DEPS})
endfunction()

# quire_tests(base SOURCES a_test.cc ... DEPS lib ... [LABEL unit]): one test program of a folder.
# Labels: unit (default), property, golden, e2e. Suites whose name ends in "Slow" become a test
# NAME_slow of their own, with the label slow as well.
function(quire_tests name)
  cmake_parse_arguments(arg "" "LABEL" "SOURCES;DEPS" ${ARGN})
  if(NOT QUIRE_BUILD_TESTS)
    return()
  endif()
  if(NOT arg_LABEL)
    set(arg_LABEL unit)
  endif()
  find_package(GTest REQUIRED)
  add_executable(${name}_test ${arg_SOURCES})
  target_link_libraries(${name}_test PRIVATE ${arg_DEPS} quire_test_data quire_test_cost
    GTest::gmock GTest::gtest_main)
  if(arg_LABEL STREQUAL unit)
    # All unit tests and nothing else: what a sanitised build is for.
    if(NOT TARGET unit_tests)
      add_custom_target(unit_tests)
    endif()
    add_dependencies(unit_tests ${name}_test)
  endif()

  set(slow "")
  foreach(source IN LISTS arg_SOURCES)
    file(STRINGS ${source} suites REGEX "^TEST(_F|_P)?\\([A-Za-z0-9]*Slow,")
    list(APPEND slow ${suites})
  endforeach()
  # A file for each test, or two of one program that run side by side would write into one.
  set(output --gtest_brief=1 --gtest_output=xml:${CMAKE_BINARY_DIR}/Testing/results/gtest)
  if(slow)
    add_test(NAME ${name} COMMAND ${name}_test ${output}/${name}.xml --gtest_filter=-*Slow.*)
    add_test(NAME ${name}_slow COMMAND ${name}_test ${output}/${name}_slow.xml --gtest_filter=*Slow.*)
    set_tests_properties(${name}_slow PROPERTIES LABELS "${arg_LABEL};slow" TIMEOUT 1500)
  else()
    add_test(NAME ${name} COMMAND ${name}_test ${output}/${name}.xml)
  endif()
  set_tests_properties(${name} PROPERTIES LABELS ${arg_LABEL} TIMEOUT 1500)
endfunction()

# quire_fuzzer(gguf SOURCES gguf_fuzz.cc DEPS lib ...): a libFuzzer program, built only with clang
# and QUIRE_BUILD_FUZZERS.
function(quire_fuzzer name)
  cmake_parse_arguments(arg "" "" "SOURCES;DEPS" ${ARGN})
  if(NOT QUIRE_BUILD_FUZZERS)
    return()
  endif()
  add_executable(fuzz_${name} ${arg_SOURCES})
  target_link_libraries(fuzz_${name} PRIVATE ${arg_DEPS})
  target_compile_options(fuzz_${name} PRIVATE -fsanitize=fuzzer)
  target_link_options(fuzz_${name} PRIVATE -fsanitize=fuzzer)
endfunction()
