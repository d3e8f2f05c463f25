/* Libraries that come and go.
 *
 *     plugins WORD...   LIBRARY: loads it, has three threads call its `run`, and unloads it
 *                       FROM>TO: renames a file
 *                       NUMBER:  from now on keeps each library for NUMBER milliseconds more
 *
 * Prints where each library was.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static long milliseconds;

static void use(const char *path)
{
    void *library = dlopen(path, RTLD_NOW);
    if (!library) {
        fprintf(stderr, "%s\n", dlerror());
        exit(1);
    }
    void *(*run)(void *) = (void *(*)(void *))dlsym(library, "run");
    printf("%lx\n", (long)((struct link_map *)library)->l_addr);
    pthread_t threads[3];
    for (int i = 0; i < 3; i++)
        pthread_create(&threads[i], 0, run, 0);
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], 0);
    usleep(milliseconds * 1000);
    dlclose(library);
}

int main(int count, char **words)
{
    for (int i = 1; i < count; i++) {
        char *to = strchr(words[i], '>');
        if (to) {
            *to = 0;
            if (rename(words[i], to + 1) != 0)
                return 1;
        } else if (atol(words[i])) {
            milliseconds = atol(words[i]);
        } else {
            use(words[i]);
        }
    }
    return 0;
}
