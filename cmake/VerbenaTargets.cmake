# From folders to targets. Sources are globbed: a new file or folder is found at the next build.

# Everything a user runs; `./dev demo` builds this and not the tests.
add_custom_target(product)

# OUT = the .cc files of DIR (GLOB or GLOB_RECURSE), without the unit tests that lie beside them.
function(verbena_sources out glob dir)
  file(${glob} sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/${dir}/*.cc)
  list(FILTER sources EXCLUDE REGEX "_test\\.cc$")
  # Programs of their own:
  list(FILTER sources EXCLUDE REGEX "/src/(perf/(main|measurement|tuning)|(models|nvmf_program)/main)\\.cc$")
  set(${out} ${sources} PARENT_SCOPE)
endfunction()

# Compiles COUNT files of TARGET at a time, in half the time and less: helpers of one layer, and of its
# tests, have names of their own.
function(verbena_compile_together target count)
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE ${count})
endfunction()

# A static library, or one of headers only while there is no .cc in it.
function(verbena_static_library target sources links)
  if(sources)
    add_library(${target} STATIC ${sources})
    if(VERBENA_TOGETHER STREQUAL ALL)  # release shows that each file includes what it uses
      verbena_compile_together(${target} 16)
    endif()
    set(scope PUBLIC)
  else()
    add_library(${target} INTERFACE)
    set(scope INTERFACE)
  endif()
  target_include_directories(${target} ${scope} ${CMAKE_SOURCE_DIR}/src)
  target_link_libraries(${target} ${scope} ${links})
endfunction()

# Adds texts to the library TARGET: NAME FILE ..., each the std::string_view that HEADER declares in
# NAMESPACE.
function(verbena_embed_texts target)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "HEADER;NAMESPACE" "TEXTS")
  set(code "#include \"${arg_HEADER}\"\n\nnamespace ${arg_NAMESPACE} {\n\n")
  while(arg_TEXTS)
    list(POP_FRONT arg_TEXTS name file)
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${file})
    file(READ ${file} text)
    string(APPEND code "const std::string_view ${name} = R\"~text~(${text})~text~\";\n")
  endwhile()
  string(APPEND code "\n}  // namespace ${arg_NAMESPACE}\n")
  set(output ${CMAKE_BINARY_DIR}/generated/${target}_texts.cc)
  set(before "")
  if(EXISTS ${output})
    file(READ ${output} before)
  endif()
  if(NOT before STREQUAL code)
    file(WRITE ${output} "${code}")
  endif()
  target_sources(${target} PRIVATE ${output})
endfunction()

# src/DIR/NAME.proto becomes "DIR/NAME.pb.h", part of the library TARGET.
function(verbena_messages target proto)
  cmake_path(REMOVE_EXTENSION proto LAST_ONLY OUTPUT_VARIABLE stem)
  set(folder ${CMAKE_BINARY_DIR}/generated/messages)
  set(code ${folder}/${stem}.pb.cc)
  file(MAKE_DIRECTORY ${folder})
  add_custom_command(OUTPUT ${code} ${folder}/${stem}.pb.h DEPENDS ${CMAKE_SOURCE_DIR}/src/${proto}
    COMMAND protobuf::protoc --cpp_out=${folder} -I${CMAKE_SOURCE_DIR}/src
            ${CMAKE_SOURCE_DIR}/src/${proto})
  set_source_files_properties(${code} PROPERTIES COMPILE_OPTIONS -w)  # not ours to mend
  target_sources(${target} PRIVATE ${code})
  target_include_directories(${target} SYSTEM PUBLIC ${folder})
  target_link_libraries(${target} PUBLIC protobuf::libprotobuf-lite)
endfunction()

# The objects of TARGET can be optimized together with others when a library is linked that asks for
# it with -flto.
function(verbena_optimize_at_link_time target)
  get_target_property(type ${target} TYPE)
  if(VERBENA_LTO AND type STREQUAL STATIC_LIBRARY)
    target_compile_options(${target} PRIVATE -flto -ffat-lto-objects)
  endif()
endfunction()

# src/NAME becomes verbena_NAME. FLAT: not the folders below. Its *_test.cc: tests/CMakeLists.txt.
function(verbena_layer name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "FLAT" "" "LINKS")
  if(arg_FLAT)
    verbena_sources(sources GLOB src/${name})
  else()
    verbena_sources(sources GLOB_RECURSE src/${name})
  endif()
  verbena_static_library(verbena_${name} "${sources}" "${arg_LINKS}")
  set_property(GLOBAL APPEND PROPERTY VERBENA_LAYERS ${name})
endfunction()

# src/abi/NAME and the symbol map src/abi/libNAME.map become lib/libNAME.so.SOVERSION (1 unless it is
# given), which replaces the system's. It exports what the map says and nothing else; sources need no visibility attributes.
# Unit tests link the objects as verbena_abi_NAME. LINKS: drop-in libraries that it loads.
function(verbena_drop_in_library name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "SOVERSION" "LINKS")
  if(NOT arg_SOVERSION)
    set(arg_SOVERSION 1)
  endif()
  verbena_sources(sources GLOB_RECURSE src/abi/${name})
  file(GLOB map CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/abi/lib${name}.map)
  verbena_static_library(verbena_abi_${name} "${sources}"
                         "verbena_abi;verbena::verbs_headers;verbena::rdmacm_headers;verbena::umad_headers")
  if(NOT sources OR VERBENA_LIBFUZZER)
    return()
  endif()
  if(NOT map)
    message(WARNING "lib${name}.so.${arg_SOVERSION} is left out: src/abi/lib${name}.map does not exist")
    return()
  endif()
  set_target_properties(verbena_abi_${name} PROPERTIES CXX_VISIBILITY_PRESET default)
  target_include_directories(verbena_abi_${name} PRIVATE ${CMAKE_SOURCE_DIR}/include)
  target_compile_options(verbena_abi_${name} PRIVATE -fno-semantic-interposition)
  verbena_optimize_at_link_time(verbena_abi_${name})
  verbena_optimize_by_training(verbena_abi_${name})

  set(lib verbena_lib${name})  # not "${name}": that is how one links the system's
  add_library(${lib} SHARED $<TARGET_OBJECTS:verbena_abi_${name}>)
  set_target_properties(${lib} PROPERTIES
    OUTPUT_NAME ${name} SOVERSION ${arg_SOVERSION} LINKER_LANGUAGE CXX LINK_DEPENDS ${map})
  target_link_libraries(${lib} PRIVATE verbena_abi ${arg_LINKS})
  target_link_options(${lib} PRIVATE
    LINKER:--version-script=${map} LINKER:--no-undefined LINKER:--as-needed
    LINKER:-z,nodelete)  # UCX and NCCL dlclose it while its helper thread lives
  if(VERBENA_LTO)
    target_link_options(${lib} PRIVATE -flto -flto=auto)  # only the first undoes -fno-lto
  endif()
  if(VERBENA_TRAINING_RUN)
    target_link_options(${lib} PRIVATE -fprofile-generate)
  elseif(VERBENA_TRAINING)
    target_link_options(${lib} PRIVATE -Wno-stringop-overflow)  # as for each of its objects
  endif()
  if(NOT VERBENA_SANITIZE)
    # Any program can load it, whichever C++ runtime that program has, or none. The unwinder is the
    # C library's own one: pthread_cancel(3) unwinds a waiting thread with it, through our frames.
    target_link_options(${lib} PRIVATE -static-libstdc++ -shared-libgcc)
  endif()
  add_dependencies(product ${lib})
  # A folder of our own, so that installing Verbena changes nothing for programs not run through it.
  # lib${name}.so is installed too: NCCL asks for that name first.
  install(TARGETS ${lib} LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/verbena)
endfunction()

# src/abi/NAME and src/abi/libverbena-NAME.map become lib/libverbena-NAME.so, which `verbena run` has
# the loader put in front of the C library in every program that it starts: it must need nothing but
# that, and has no name without a version to be linked by. Unit tests link the objects as
# verbena_abi_NAME.
function(verbena_preloaded_library name)
  verbena_sources(sources GLOB_RECURSE src/abi/${name})
  set(map ${CMAKE_SOURCE_DIR}/src/abi/libverbena-${name}.map)
  verbena_static_library(verbena_abi_${name} "${sources}" "${CMAKE_DL_LIBS}")
  if(VERBENA_LIBFUZZER OR VERBENA_SANITIZE)  # a sanitizer's runtime wants to come first itself
    return()
  endif()
  set_target_properties(verbena_abi_${name} PROPERTIES CXX_VISIBILITY_PRESET default)
  target_compile_options(verbena_abi_${name} PRIVATE -fno-exceptions -fno-rtti)

  set(lib verbena_lib${name})
  add_library(${lib} MODULE $<TARGET_OBJECTS:verbena_abi_${name}>)
  target_link_libraries(${lib} PRIVATE verbena_device)  # names of counters
  set_target_properties(${lib} PROPERTIES
    OUTPUT_NAME verbena-${name} LINKER_LANGUAGE CXX LINK_DEPENDS ${map})
  target_link_options(${lib} PRIVATE
    LINKER:--version-script=${map} LINKER:--no-undefined LINKER:--as-needed -static-libgcc)
  add_dependencies(product ${lib})
  install(TARGETS ${lib} LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/verbena)
endfunction()

# The loops of src/coll/reduce/kernels_SET.cc, each compiled for its instruction set. They are what
# collective operations spend their time in, so they are optimized in every build.
function(verbena_compile_kernels layer)
  set(flags_scalar)
  set(flags_avx2 -mavx2)
  set(flags_avx512 -mavx512f -mavx512bw -mavx512dq -mavx512vl)
  foreach(set IN ITEMS scalar avx2 avx512)
    set_source_files_properties(src/${layer}/reduce/kernels_${set}.cc PROPERTIES
      SKIP_UNITY_BUILD_INCLUSION ON
      COMPILE_OPTIONS "-O3;-fno-trapping-math;${flags_${set}}"
      COMPILE_DEFINITIONS "VERBENA_KERNELS=${set};VERBENA_KERNELS_NAME=\"${set}\"")
  endforeach()
endfunction()

# src/LAYER with its libverbena-NAME.map becomes lib/libverbena-NAME.so.1, which programs link as
# -lverbena-NAME. It is linked to the system's libibverbs and librdmacm (which connects iWARP
# devices), and uses whichever the loader finds.
function(verbena_public_library name layer)
  if(VERBENA_LIBFUZZER)
    return()
  endif()
  set(lib verbena_lib${name})
  set(map ${CMAKE_SOURCE_DIR}/src/${layer}/libverbena-${name}.map)
  set_source_files_properties(src/${layer}/api.cc PROPERTIES
    COMPILE_OPTIONS -fvisibility=default SKIP_UNITY_BUILD_INCLUSION ON)
  add_library(${lib} SHARED $<TARGET_OBJECTS:verbena_${layer}>)
  set_target_properties(${lib} PROPERTIES
    OUTPUT_NAME verbena-${name} SOVERSION 1 LINKER_LANGUAGE CXX LINK_DEPENDS ${map})
  target_link_libraries(${lib} PRIVATE verbena_${layer} ibverbs rdmacm Threads::Threads)
  target_include_directories(${lib} INTERFACE ${CMAKE_SOURCE_DIR}/include)
  target_link_options(${lib} PRIVATE
    LINKER:--version-script=${map} LINKER:--no-undefined LINKER:--as-needed)
  if(NOT VERBENA_SANITIZE)
    target_link_options(${lib} PRIVATE -static-libstdc++ -shared-libgcc)
  endif()
  # The linker reads the drop-in libraries where a program links this one, as they lie beside it.
  add_dependencies(${lib} verbena_librdmacm)
  add_dependencies(product ${lib})
  install(TARGETS ${lib} LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
          NAMELINK_COMPONENT devel)
endfunction()

function(verbena_collectives_library)
  target_include_directories(verbena_coll PUBLIC ${CMAKE_SOURCE_DIR}/include)
  verbena_public_library(coll communicator)
endfunction()

# Its Python module needs no compiler.
function(verbena_transfer_library)
  verbena_public_library(transfer agent)
  set_source_files_properties(src/agent/kv_api.cc PROPERTIES
    COMPILE_OPTIONS -fvisibility=default SKIP_UNITY_BUILD_INCLUSION ON)
  set(module python/verbena_transfer/__init__.py)
  configure_file(${CMAKE_SOURCE_DIR}/${module} ${CMAKE_BINARY_DIR}/${module} COPYONLY)
  install(FILES ${CMAKE_SOURCE_DIR}/${module}
          DESTINATION ${VERBENA_PYTHON_DIR}/verbena_transfer)
endfunction()

# src/torch becomes python/verbena_torch/_backend.so where PyTorch's headers and libraries are found:
# Debian's libtorch-dev, python3-torch and pybind11-dev, or the folder of another PyTorch in
# CMAKE_PREFIX_PATH. Its headers take ten seconds, so all of it is one file.
function(verbena_torch_backend)
  if(NOT VERBENA_TORCH OR NOT TARGET verbena_libcoll OR VERBENA_SANITIZE)
    return()
  endif()
  find_path(VERBENA_TORCH_INCLUDE torch/csrc/distributed/c10d/ProcessGroup.hpp)
  find_path(VERBENA_TORCH_API_INCLUDE torch/version.h
            HINTS ${VERBENA_TORCH_INCLUDE}/torch/csrc/api/include)
  find_path(VERBENA_PYBIND11_INCLUDE pybind11/chrono.h HINTS ${VERBENA_TORCH_INCLUDE})
  find_path(VERBENA_PYTHON_INCLUDE Python.h
            PATH_SUFFIXES python3.14 python3.13 python3.12 python3.11 python3.10 python3.9)
  set(found TRUE)
  foreach(library IN ITEMS torch_python torch_cpu c10)
    find_library(VERBENA_${library}_LIBRARY ${library})
    mark_as_advanced(VERBENA_${library}_LIBRARY)
    list(APPEND libraries ${VERBENA_${library}_LIBRARY})
    if(NOT VERBENA_${library}_LIBRARY)
      set(found FALSE)
    endif()
  endforeach()
  foreach(folder IN ITEMS TORCH TORCH_API PYBIND11 PYTHON)
    mark_as_advanced(VERBENA_${folder}_INCLUDE)
    list(APPEND folders ${VERBENA_${folder}_INCLUDE})
    if(NOT VERBENA_${folder}_INCLUDE)
      set(found FALSE)
    endif()
  endforeach()
  if(NOT found)
    message(STATUS "verbena_torch is left out: install libtorch-dev python3-torch pybind11-dev")
    return()
  endif()
  set(package ${CMAKE_BINARY_DIR}/python/verbena_torch)
  configure_file(${CMAKE_SOURCE_DIR}/python/verbena_torch/__init__.py ${package}/__init__.py
                 COPYONLY)
  add_library(verbena_torch MODULE ${CMAKE_SOURCE_DIR}/src/torch/process_group.cc)
  target_include_directories(verbena_torch SYSTEM PRIVATE ${folders})
  target_link_libraries(verbena_torch PRIVATE verbena_libcoll ${libraries})
  set_target_properties(verbena_torch PROPERTIES
    PREFIX "" OUTPUT_NAME _backend LIBRARY_OUTPUT_DIRECTORY ${package}
    CXX_STANDARD 17 INSTALL_RPATH "$ORIGIN/../../..")
  add_dependencies(product verbena_torch)
  set(packages ${VERBENA_PYTHON_DIR}/verbena_torch)
  install(TARGETS verbena_torch LIBRARY DESTINATION ${packages})
  install(FILES ${CMAKE_SOURCE_DIR}/python/verbena_torch/__init__.py DESTINATION ${packages})
endfunction()

# src/LAYER/main.cc becomes verbena-coll-rank, which lies beside the drop-in libraries: `verbena coll`
# starts it.
function(verbena_rank_program layer)
  if(NOT TARGET verbena_libcoll)
    return()
  endif()
  add_executable(verbena_coll_rank ${CMAKE_SOURCE_DIR}/src/${layer}/main.cc
                 ${CMAKE_SOURCE_DIR}/src/${layer}/measurement.cc
                 ${CMAKE_SOURCE_DIR}/src/${layer}/tuning.cc)
  target_link_libraries(verbena_coll_rank PRIVATE verbena_${layer} verbena_libcoll)
  set_target_properties(verbena_coll_rank PROPERTIES
    OUTPUT_NAME verbena-coll-rank RUNTIME_OUTPUT_DIRECTORY ${CMAKE_LIBRARY_OUTPUT_DIRECTORY}
    INSTALL_RPATH "$ORIGIN/..")
  add_dependencies(product verbena_coll_rank)
  install(TARGETS verbena_coll_rank RUNTIME DESTINATION ${CMAKE_INSTALL_LIBDIR}/verbena)
endfunction()

# src/LAYER/main.cc becomes verbena-transfer, which lies beside the drop-in libraries: `verbena model`
# and `verbena bench` start it.
function(verbena_transfer_program layer)
  if(NOT TARGET verbena_libtransfer)
    return()
  endif()
  target_include_directories(verbena_${layer} PUBLIC ${CMAKE_SOURCE_DIR}/include)
  add_executable(verbena_transfer_program ${CMAKE_SOURCE_DIR}/src/${layer}/main.cc)
  target_link_libraries(verbena_${layer} PUBLIC verbena_libtransfer ibverbs rdmacm)
  target_link_libraries(verbena_transfer_program PRIVATE verbena_${layer})
  set_target_properties(verbena_transfer_program PROPERTIES
    OUTPUT_NAME verbena-transfer RUNTIME_OUTPUT_DIRECTORY ${CMAKE_LIBRARY_OUTPUT_DIRECTORY}
    INSTALL_RPATH "$ORIGIN/..")
  add_dependencies(product verbena_transfer_program)
  install(TARGETS verbena_transfer_program RUNTIME DESTINATION ${CMAKE_INSTALL_LIBDIR}/verbena)
endfunction()

# src/nvmf_program/main.cc becomes verbena-nvmf, which lies beside the drop-in libraries: `verbena nvmf`
# starts it. It uses whichever libibverbs and librdmacm the loader finds.
function(verbena_nvmf_program)
  if(VERBENA_LIBFUZZER)
    return()
  endif()
  add_executable(verbena_nvmf_tool ${CMAKE_SOURCE_DIR}/src/nvmf_program/main.cc)
  target_link_libraries(verbena_nvmf_tool PRIVATE verbena_nvmf_program)
  set_target_properties(verbena_nvmf_tool PROPERTIES
    OUTPUT_NAME verbena-nvmf RUNTIME_OUTPUT_DIRECTORY ${CMAKE_LIBRARY_OUTPUT_DIRECTORY})
  add_dependencies(product verbena_nvmf_tool)
  install(TARGETS verbena_nvmf_tool RUNTIME DESTINATION ${CMAKE_INSTALL_LIBDIR}/verbena)
endfunction()

# src/nbdkit becomes lib/nbdkit-verbena-plugin.so where nbdkit's header is (nbdkit-plugin-dev).
function(verbena_nbdkit_plugin)
  find_path(VERBENA_NBDKIT_INCLUDE nbdkit-plugin.h)
  mark_as_advanced(VERBENA_NBDKIT_INCLUDE)
  if(NOT VERBENA_NBDKIT_INCLUDE OR VERBENA_LIBFUZZER OR VERBENA_SANITIZE)
    message(STATUS "nbdkit's plugin is left out: install nbdkit-plugin-dev")
    return()
  endif()
  add_library(verbena_nbdkit MODULE ${CMAKE_SOURCE_DIR}/src/nbdkit/plugin.cc)
  target_include_directories(verbena_nbdkit SYSTEM PRIVATE ${VERBENA_NBDKIT_INCLUDE})
  target_link_libraries(verbena_nbdkit PRIVATE verbena_nvmf_program)
  set_target_properties(verbena_nbdkit PROPERTIES PREFIX "" OUTPUT_NAME nbdkit-verbena-plugin)
  add_dependencies(product verbena_nbdkit)
  install(TARGETS verbena_nbdkit LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/verbena)
endfunction()

# src/cli/mpi becomes lib/libverbena-mpi.so where an MPI is found. `verbena` loads it when it is
# started by mpirun.
function(verbena_mpi_plugin)
  find_package(MPI QUIET COMPONENTS CXX)  # libopenmpi-dev; optional
  if(NOT MPI_CXX_FOUND OR VERBENA_LIBFUZZER OR VERBENA_SANITIZE)  # MPI leaves memory behind
    return()
  endif()
  add_library(verbena_mpi MODULE ${CMAKE_SOURCE_DIR}/src/cli/mpi/plugin.cc)
  target_include_directories(verbena_mpi PRIVATE ${CMAKE_SOURCE_DIR}/src)
  target_compile_definitions(verbena_mpi PRIVATE OMPI_SKIP_MPICXX MPICH_SKIP_MPICXX)
  target_link_libraries(verbena_mpi PRIVATE MPI::MPI_CXX)
  set_target_properties(verbena_mpi PROPERTIES OUTPUT_NAME verbena-mpi)
  add_dependencies(product verbena_mpi)
  install(TARGETS verbena_mpi LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/verbena)
endfunction()

# src/cli/gpu_paths becomes verbena-gpu-paths, which lies beside the drop-in libraries: `verbena bench`
# starts it.
function(verbena_gpu_paths_program)
  if(NOT TARGET verbena_libibverbs OR VERBENA_LIBFUZZER)
    return()
  endif()
  add_executable(verbena_gpu_paths ${CMAKE_SOURCE_DIR}/src/cli/gpu_paths/program.cc)
  target_include_directories(verbena_gpu_paths PRIVATE ${CMAKE_SOURCE_DIR}/src)
  target_link_libraries(verbena_gpu_paths PRIVATE ibverbs rdmacm verbena::verbs_headers Threads::Threads
                        ${CMAKE_DL_LIBS})
  set_target_properties(verbena_gpu_paths PROPERTIES
    OUTPUT_NAME verbena-gpu-paths RUNTIME_OUTPUT_DIRECTORY ${CMAKE_LIBRARY_OUTPUT_DIRECTORY})
  add_dependencies(product verbena_gpu_paths)
  install(TARGETS verbena_gpu_paths RUNTIME DESTINATION ${CMAKE_INSTALL_LIBDIR}/verbena)
endfunction()

# src/LAYER becomes the program bin/NAME. It finds the drop-in libraries by the definition
# VERBENA_LIBRARY_RELATIVE_PATHS: folders relative to the one of its executable (/proc/self/exe),
# ':' between them; the first that holds libibverbs.so.1 wins. The first is for an installed tree,
# the second for a build tree.
function(verbena_command name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "LAYER" "LINKS")
  verbena_sources(sources GLOB_RECURSE src/${arg_LAYER})
  list(FILTER sources EXCLUDE REGEX "/src/cli/mpi/")  # verbena_mpi_plugin()
  list(FILTER sources EXCLUDE REGEX "/src/cli/gpu_paths/")  # verbena_gpu_paths_program()
  set(main ${CMAKE_SOURCE_DIR}/src/${arg_LAYER}/main.cc)
  if(NOT main IN_LIST sources OR VERBENA_LIBFUZZER)
    return()
  endif()
  # The program is main.cc; the rest is a library, so that unit tests can link it.
  list(REMOVE_ITEM sources ${main})
  verbena_static_library(verbena_${arg_LAYER} "${sources}" "${arg_LINKS}")
  set_property(GLOBAL APPEND PROPERTY VERBENA_LAYERS ${arg_LAYER})
  add_executable(${name} ${main})
  target_link_libraries(${name} PRIVATE verbena_${arg_LAYER})

  file(RELATIVE_PATH installed
       ${CMAKE_INSTALL_FULL_BINDIR} ${CMAKE_INSTALL_FULL_LIBDIR}/verbena)
  target_compile_definitions(verbena_${arg_LAYER} PRIVATE
    VERBENA_LIBRARY_RELATIVE_PATHS="${installed}:../lib" VERBENA_VERSION="${PROJECT_VERSION}")

  add_dependencies(product ${name})
  install(TARGETS ${name} RUNTIME)
  # Its manual pages are its --help, and the public headers. Instrumented programs are for tests alone.
  find_program(VERBENA_PYTHON NAMES python3)
  if(VERBENA_PYTHON AND NOT VERBENA_SANITIZE AND NOT VERBENA_TRAINING_RUN)
    set(script ${CMAKE_SOURCE_DIR}/cmake/manual_pages.py)
    file(GLOB headers CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/include/verbena/*.h)
    add_custom_command(OUTPUT man/man1/${name}.1
      COMMAND ${VERBENA_PYTHON} ${script} $<TARGET_FILE:${name}> ${CMAKE_BINARY_DIR}/man ${headers}
      DEPENDS ${name} ${script} ${headers} VERBATIM)
    add_custom_target(manual_pages ALL DEPENDS man/man1/${name}.1)
    add_dependencies(product manual_pages)
    install(DIRECTORY ${CMAKE_BINARY_DIR}/man/ DESTINATION ${CMAKE_INSTALL_MANDIR})
  endif()
endfunction()

function(verbena_bench_program name)
  add_executable(${name} ${ARGN})
  target_include_directories(${name} PRIVATE ${CMAKE_SOURCE_DIR})
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bench)
endfunction()

# Beside the layers: programs that measure. They need no test and are in no sanitizer build.
function(verbena_benchmarks dir)
  if(VERBENA_LIBFUZZER OR VERBENA_SANITIZE)
    return()
  endif()
  # What the machine can do: plain programs, limit_NAME.
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/${dir}/limits/*.cc)
  foreach(source IN LISTS sources)
    cmake_path(GET source STEM stem)
    verbena_bench_program(limit_${stem} ${source})
    # One of them runs in the lab's guests, which have no libstdc++.
    target_link_options(limit_${stem} PRIVATE -static-libstdc++ -static-libgcc)
  endforeach()
  # What perftest does not ask: plain programs of the verbs, on whichever libibverbs and
  # librdmacm they find.
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/${dir}/verbs/*.cc)
  foreach(source IN LISTS sources)
    cmake_path(GET source STEM stem)
    verbena_bench_program(verbs_${stem} ${source})
    target_link_libraries(verbs_${stem} PRIVATE ibverbs rdmacm)
  endforeach()
  # What the core's parts cost: in instructions (count_frames), in memory (count_memory), in time
  # (bench_core).
  verbena_bench_program(count_frames
    ${CMAKE_SOURCE_DIR}/${dir}/count/frames.cc ${CMAKE_SOURCE_DIR}/${dir}/micro/device_pair.cc)
  target_link_libraries(count_frames PRIVATE verbena_device)
  verbena_bench_program(count_memory ${CMAKE_SOURCE_DIR}/${dir}/count/memory.cc
    ${CMAKE_SOURCE_DIR}/${dir}/micro/device_pair.cc ${CMAKE_SOURCE_DIR}/${dir}/micro/allocations.cc)
  target_link_libraries(count_memory PRIVATE verbena_device)
  if(BUILD_TESTING)  # an idle RC QP with small queues takes 4 KiB at most
    add_test(NAME idle_qp_memory COMMAND count_memory 1 4096)
    add_dependencies(all_tests count_memory)
  endif()
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/${dir}/micro/*.cc)
  if(benchmark_FOUND)
    verbena_bench_program(bench_core ${sources})
    target_link_libraries(bench_core PRIVATE verbena_device benchmark::benchmark_main)
  else()
    message(STATUS "bench_core is left out: install libbenchmark-dev (or run ./dev setup)")
  endif()
endfunction()
