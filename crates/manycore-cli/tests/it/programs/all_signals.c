// Says each signal that comes, with the value that came with it, until its input ends.
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static void say(int signal, siginfo_t *info, void *context) {
    (void)context;
    char line[64];
    int value = info->si_code == SI_QUEUE ? info->si_value.sival_int : 0;
    int length = snprintf(line, sizeof line, "%d %d\n", signal, value);
    if (write(1, line, length) != length) _exit(9);
}

int main(void) {
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    pthread_mutex_lock(&lock);
    pthread_mutex_unlock(&lock);
    for (int signal = 1; signal <= SIGRTMAX; signal++) {
        struct sigaction action = {.sa_sigaction = say, .sa_flags = SA_SIGINFO | SA_RESTART};
        sigfillset(&action.sa_mask);
        sigaction(signal, &action, NULL);
    }
    puts("ready");
    fflush(stdout);
    char byte;
    while (read(0, &byte, 1) > 0) {}
    return 7;
}
