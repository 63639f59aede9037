# Optimization by what the code did in a run of its own: GCC learns which branches the drop-in
# libraries take for each message, and lays them out by that (-fprofile-use): a tenth to a sixth less
# time for a small message (docs/performance.md).
#
# Another build of them in ${CMAKE_BINARY_DIR}/training, with counters, runs bench/verbs/both_ends.cc
# once, before anything else is compiled: 3 minutes on two cores. Functions that changed since are
# compiled as if there had been no training; to train anew, delete training/done (`./dev bench` does,
# where a source is newer). Where training fails, nothing else does.
set(VERBENA_TRAINING_RUN OFF CACHE BOOL "This is that build")
mark_as_advanced(VERBENA_TRAINING_RUN)
set(VERBENA_TRAINING_DIR ${CMAKE_BINARY_DIR}/training)

# The objects of TARGET count, or are optimized by what was counted.
function(verbena_optimize_by_training target)
  get_target_property(type ${target} TYPE)
  if(NOT type STREQUAL STATIC_LIBRARY)
    return()
  endif()
  if(VERBENA_TRAINING_RUN)
    target_compile_options(${target} PRIVATE -fprofile-generate -fprofile-update=prefer-atomic)
    return()
  elseif(NOT VERBENA_TRAINING)
    return()
  endif()
  # What was not run in training is compiled as always. The flow analysis is misled by branches that
  # it takes to be impossible. That a function has changed since is a warning which nothing turns off
  # by name; builds without training (dev, tsan) keep warnings errors.
  target_compile_options(${target} PRIVATE
    -fprofile-use=${VERBENA_TRAINING_DIR}/profile -fprofile-partial-training
    -Wno-missing-profile -Wno-coverage-mismatch -Wno-stringop-overflow -Wno-error)
  get_target_property(sources ${target} SOURCES)
  set_property(SOURCE ${sources} APPEND PROPERTY OBJECT_DEPENDS ${VERBENA_TRAINING_DIR}/done)
  add_dependencies(${target} training)
endfunction()

if(VERBENA_TRAINING)
  add_custom_command(OUTPUT ${VERBENA_TRAINING_DIR}/done
    COMMAND ${CMAKE_COMMAND} -D SOURCE=${CMAKE_SOURCE_DIR} -D BUILD=${CMAKE_BINARY_DIR}
            -D GENERATOR=${CMAKE_GENERATOR} -D COMPILER=${CMAKE_CXX_COMPILER}
            -D "FLAGS=${CMAKE_CXX_FLAGS}" -P ${CMAKE_SOURCE_DIR}/cmake/train.cmake
    COMMENT "Training the drop-in libraries (VERBENA_TRAINING=OFF leaves it out)"
    USES_TERMINAL VERBATIM)
  add_custom_target(training DEPENDS ${VERBENA_TRAINING_DIR}/done)
endif()
