// Symbol versions that the map cannot say: one name with several versions, or several names of one
// function. Each line attaches a name and a version to a function with C linkage of this library.
// Macros, because the assembler must see the names (GNU as manual, .symver). One function may carry
// any number of names.
#pragma once

// The linker binds new programs to the default version. Only old programs ask for an old version.
#define VERBENA_DEFAULT_VERSION(function, name, version) \
  __asm__(".symver " #function "," #name "@@" version)
#define VERBENA_OLD_VERSION(function, name, version) \
  __asm__(".symver " #function "," #name "@" version)
