/* Another thread than the first executes the program that is named, when a byte has come. */
#include <pthread.h>
#include <unistd.h>

static void *becomes(void *arguments) {
    char byte;
    if (read(0, &byte, 1) == 1)
        execv(((char **)arguments)[0], arguments);
    _exit(1);
}

int main(int argc, char **argv) {
    pthread_t thread;
    (void)argc;
    pthread_create(&thread, 0, becomes, argv + 1);
    pause();
}
