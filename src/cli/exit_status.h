// Exit statuses of `verbena`, as `verbena --help` lists them. 126 and 127 are those of env(1),
// nice(1) and every shell; otherwise `verbena run` has no status of its own: the program takes its
// place.
#pragma once

namespace verbena::cli {

inline constexpr int kExitOk = 0;
inline constexpr int kExitProblem = 1;          // doctor has found one
inline constexpr int kExitCannot = 2;           // wrong usage, or what was asked cannot be had here
inline constexpr int kExitUnmet = 3;            // sim: a result is not as --expect or assert has it
inline constexpr int kExitNotExecutable = 126;  // the program is there, but is no program
inline constexpr int kExitNotFound = 127;
inline constexpr int kExitInterrupted = 130;  // sim: told to stop; what there is was written

}  // namespace verbena::cli
