# How everything is compiled. CMakePresets.json sets these; packagers need none of them.
option(BUILD_TESTING "Build the tests" ON)
option(VERBENA_WERROR "Warnings are errors (our presets turn it on)" OFF)
set(VERBENA_TOGETHER TESTS CACHE STRING "What is compiled several files at a time: TESTS, ALL or NONE")
set_property(CACHE VERBENA_TOGETHER PROPERTY STRINGS TESTS ALL NONE)
set(VERBENA_LINKER "" CACHE STRING "What -fuse-ld= gets, e.g. mold (empty: the compiler's choice)")
option(VERBENA_TORCH "Build the backend of torch.distributed where PyTorch is found" ON)
# A string: CMake makes a PATH absolute, in the folder it is started in.
set(VERBENA_PYTHON_DIR ${CMAKE_INSTALL_LIBDIR}/python3/dist-packages CACHE STRING
    "Where Python modules are installed")
option(VERBENA_LIBFUZZER "Build only the fuzz targets, with libFuzzer (needs clang++)" OFF)
set(VERBENA_SANITIZE "" CACHE STRING "What -fsanitize= gets, e.g. address,undefined or thread")
set(VERBENA_SIM_SEEDS 2000 CACHE STRING "Seeds each simulation test runs; SIM_SEEDS=N overrides it")

if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "Debug or Release" FORCE)
endif()

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_CXX_VISIBILITY_PRESET hidden)
set(CMAKE_VISIBILITY_INLINES_HIDDEN ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)  # for clang-tidy and editors

# The same sources give the same bytes in each folder: libraries are found relative to the program, and
# __FILE__ is relative to the tree. So ccache also finds what another clone has compiled.
set(CMAKE_BUILD_RPATH_USE_ORIGIN ON)
add_compile_options(
  -fmacro-prefix-map=${CMAKE_SOURCE_DIR}/= -fmacro-prefix-map=${CMAKE_BINARY_DIR}/=)

# The drop-in libraries are optimized as a whole when they are linked: a seventh of their instructions
# for a small message. Their objects carry machine code too, which the other programs are linked from
# (verbena_optimize_at_link_time).
set(has_link_time_optimizer OFF)
if(CMAKE_CXX_COMPILER_ID STREQUAL GNU AND CMAKE_BUILD_TYPE STREQUAL Release AND NOT VERBENA_SANITIZE)
  set(has_link_time_optimizer ON)
endif()
option(VERBENA_LTO "Optimize the drop-in libraries when they are linked (needs GCC)"
       ${has_link_time_optimizer})
option(VERBENA_TRAINING "Optimize the drop-in libraries by a run of theirs (needs GCC)"
       ${VERBENA_LTO})

set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)  # bin/verbena
set(CMAKE_LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/lib)  # lib/libibverbs.so.1
set(CMAKE_ARCHIVE_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/archives)

find_program(CCACHE ccache)
mark_as_advanced(CCACHE)
if(CCACHE AND NOT DEFINED CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CCACHE})
endif()

add_compile_options(-Wall -Wextra -Wshadow -Wconversion -Wswitch)
if(VERBENA_WERROR)
  add_compile_options(-Werror)
endif()
if(CMAKE_CXX_COMPILER_ID MATCHES Clang)
  add_compile_options(-Wno-sign-conversion)  # not in g++'s -Wconversion either
elseif(CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  # g++ 12 warns of the standard library's own `"," + std::string` (GCC bug 105651).
  add_compile_options(-Wno-restrict)
endif()

if(VERBENA_SANITIZE)
  add_compile_options(
    -fsanitize=${VERBENA_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${VERBENA_SANITIZE})
  add_compile_definitions(_GLIBCXX_ASSERTIONS)
  if(CMAKE_CXX_COMPILER_ID STREQUAL GNU)
    # Instrumented code misleads g++'s flow analysis, as its manual says; release has these on.
    add_compile_options(-Wno-maybe-uninitialized -Wno-stringop-overflow -Wno-array-bounds)
  endif()
endif()
if(VERBENA_LIBFUZZER)
  if(NOT CMAKE_CXX_COMPILER_ID MATCHES Clang)
    message(FATAL_ERROR "VERBENA_LIBFUZZER needs clang++ (Debian: clang-14 libclang-rt-14-dev); "
                        "the compiler here is ${CMAKE_CXX_COMPILER}")
  endif()
  add_compile_options(-fsanitize=fuzzer-no-link)
endif()
if(VERBENA_LINKER)
  add_link_options(-fuse-ld=${VERBENA_LINKER})
endif()
if(VERBENA_LTO)
  add_link_options(-fno-lto)  # but for what asks for it
endif()
