/* The functions of the CUDA driver that these programs use, from the library that argv[1] names. */
#pragma once

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

typedef unsigned long long gpu_pointer; /* CUdeviceptr */

static int (*gpu_init)(unsigned);
static int (*gpu_context_create)(void **, unsigned, int);
static int (*gpu_alloc)(gpu_pointer *, size_t);
static int (*gpu_pool_alloc)(gpu_pointer *, size_t, void *);
static int (*gpu_free)(gpu_pointer);
static int (*gpu_to_host)(void *, gpu_pointer, size_t);
static int (*gpu_to_device)(gpu_pointer, const void *, size_t);

static inline void die(const char *what) {
  perror(what);
  exit(1);
}

static inline void load_driver(const char *path) {
  void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  void *context;
  if (library == NULL) die(dlerror());
  gpu_init = dlsym(library, "cuInit");
  gpu_context_create = dlsym(library, "cuCtxCreate_v2");
  gpu_alloc = dlsym(library, "cuMemAlloc_v2");
  gpu_pool_alloc = dlsym(library, "cuMemAllocAsync");
  gpu_free = dlsym(library, "cuMemFree_v2");
  gpu_to_host = dlsym(library, "cuMemcpyDtoH_v2");
  gpu_to_device = dlsym(library, "cuMemcpyHtoD_v2");
  if (gpu_init(0) != 0 || gpu_context_create(&context, 0, 0) != 0) die("cuCtxCreate");
}
