# cmake -P: builds the drop-in libraries with counters, runs a program on them, and puts what was
# counted where the objects of BUILD look for it (VerbenaTraining.cmake). Says what failed, and
# leaves it at that.
set(here ${BUILD}/training)
set(timeout_s 120)  # of a run

set(failed "")
function(attempt)
  if(failed)
    return()
  endif()
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE status)
  if(NOT status EQUAL 0)
    string(REPLACE ";" " " command "${ARGN}")
    set(failed ${command} PARENT_SCOPE)
  endif()
endfunction()

# Nothing of the caller's environment changes what it does.
function(train local messages)
  attempt(timeout ${timeout_s} env -i HOME=$ENV{HOME} PATH=$ENV{PATH} LD_LIBRARY_PATH=${here}/lib
          VERBENA_ADDRESS=127.0.0.1 VERBENA_LOCAL=${local} ${here}/bench/verbs_both_ends ${messages})
  set(failed ${failed} PARENT_SCOPE)
endfunction()

# GCC looks for the counts of BUILD/X.o in profile/, by the name of BUILD/X, with # for each slash.
function(put_counts)
  file(REMOVE_RECURSE ${here}/profile)
  file(MAKE_DIRECTORY ${here}/profile)
  file(GLOB_RECURSE counts RELATIVE ${here} ${here}/*.gcda)
  foreach(file IN LISTS counts)
    string(REPLACE "/" "#" name ${BUILD}/${file})
    file(COPY_FILE ${here}/${file} ${here}/profile/${name})
  endforeach()
endfunction()

file(MAKE_DIRECTORY ${here})
attempt(${CMAKE_COMMAND} -S ${SOURCE} -B ${here} -G ${GENERATOR} -D CMAKE_CXX_COMPILER=${COMPILER}
        -D CMAKE_CXX_FLAGS=${FLAGS} -D CMAKE_BUILD_TYPE=Release -D VERBENA_TRAINING_RUN=ON
        -D VERBENA_LTO=OFF -D BUILD_TESTING=OFF)
attempt(${CMAKE_COMMAND} --build ${here} --parallel --target verbena_libibverbs verbs_both_ends)
# By memory, and by UDP sockets, where the kernel takes most of the time.
train(on 100000)
train(off 10000)
put_counts()
if(failed)
  message(STATUS "no training, as this failed: ${failed}")
endif()
file(TOUCH ${here}/done)
