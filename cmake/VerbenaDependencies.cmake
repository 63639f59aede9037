# What Verbena stands on, each by its Debian package. `./dev setup` installs them.
set(THREADS_PREFER_PTHREAD_FLAG ON)
find_package(Threads REQUIRED)

# A library without a CMake package: verbena::NAME from its header and, if it has one, its binary.
function(verbena_find name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "HEADER;LIBRARY;PACKAGE" "")
  string(TOUPPER ${name} upper)
  find_path(${upper}_INCLUDE_DIR ${arg_HEADER})
  mark_as_advanced(${upper}_INCLUDE_DIR)
  set(found ${${upper}_INCLUDE_DIR})
  add_library(verbena::${name} INTERFACE IMPORTED)
  if(arg_LIBRARY)
    find_library(${upper}_LIBRARY ${arg_LIBRARY})
    mark_as_advanced(${upper}_LIBRARY)
    if(NOT ${upper}_LIBRARY)
      set(found FALSE)
    endif()
    target_link_libraries(verbena::${name} INTERFACE ${${upper}_LIBRARY})
  endif()
  if(NOT found)
    message(FATAL_ERROR "${arg_HEADER} not found: install ${arg_PACKAGE} (or run ./dev setup)")
  endif()
  target_include_directories(verbena::${name} SYSTEM INTERFACE ${${upper}_INCLUDE_DIR})
endfunction()

verbena_find(isal HEADER isa-l.h LIBRARY isal PACKAGE libisal-dev)
verbena_find(zlib HEADER zlib.h LIBRARY z PACKAGE zlib1g-dev)
verbena_find(expected HEADER tl/expected.hpp PACKAGE libexpected-dev)
verbena_find(verbs_headers HEADER infiniband/verbs.h PACKAGE libibverbs-dev)
verbena_find(rdmacm_headers HEADER rdma/rdma_cma.h PACKAGE librdmacm-dev)
verbena_find(umad_headers HEADER infiniband/umad.h PACKAGE libibumad-dev)
verbena_find(openssl HEADER openssl/ssl.h PACKAGE libssl-dev)  # loaded when a device encrypts
verbena_find(sqlite HEADER sqlite3.h LIBRARY sqlite3 PACKAGE libsqlite3-dev)
verbena_find(libcrypto HEADER openssl/evp.h LIBRARY crypto PACKAGE libssl-dev)  # linked by verbena-nvmf
# Files of NVMe over Fabrics targets go through io_uring; without liburing by blocking calls.
add_library(verbena::liburing INTERFACE IMPORTED)
find_path(LIBURING_INCLUDE_DIR liburing.h)
find_library(LIBURING_LIBRARY uring)
mark_as_advanced(LIBURING_INCLUDE_DIR LIBURING_LIBRARY)
if(LIBURING_INCLUDE_DIR AND LIBURING_LIBRARY)
  target_include_directories(verbena::liburing SYSTEM INTERFACE ${LIBURING_INCLUDE_DIR})
  target_link_libraries(verbena::liburing INTERFACE ${LIBURING_LIBRARY})
  target_compile_definitions(verbena::liburing INTERFACE VERBENA_LIBURING)
else()
  message(STATUS "io_uring is left out: install liburing-dev (or run ./dev setup)")
endif()
# The library that draws the charts of report.html, which goes into the page.
find_file(VERBENA_CHART_LIBRARY chart.min.js PATH_SUFFIXES share/javascript/chart.js
          PATHS /usr /usr/local NO_DEFAULT_PATH)
mark_as_advanced(VERBENA_CHART_LIBRARY)
if(NOT VERBENA_CHART_LIBRARY)
  message(FATAL_ERROR "chart.min.js not found: install libjs-chart.js (or run ./dev setup)")
endif()
find_package(yaml-cpp REQUIRED)  # libyaml-cpp-dev
find_package(Protobuf REQUIRED)  # libprotobuf-dev protobuf-compiler
if(NOT VERBENA_LIBFUZZER)
  verbena_find(cli11 HEADER CLI/CLI.hpp PACKAGE libcli11-dev)
  find_package(fmt REQUIRED)     # libfmt-dev
  find_package(spdlog REQUIRED)  # libspdlog-dev
  find_package(benchmark)        # libbenchmark-dev; optional
endif()
if(BUILD_TESTING)
  find_package(GTest REQUIRED)   # libgtest-dev libgmock-dev
  verbena_find(pcap HEADER pcap/pcap.h LIBRARY pcap PACKAGE libpcap-dev)
endif()
