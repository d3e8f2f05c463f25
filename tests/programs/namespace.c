/* Loads a library into a namespace of its own, whose locks are those of another glibc. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>

int main(void) {
    puts(dlmopen(LM_ID_NEWLM, "libm.so.6", RTLD_NOW) ? "loaded" : dlerror());
    return 0;
}
