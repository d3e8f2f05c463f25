/* Streams on sockets: they call the kernel past the functions of their names. */
#define PROGRAM "stdio"
#include "call.h"

static int sv[2];
static char b[64];

CASE(lines) {
    unix_pair(SOCK_STREAM, sv);
    FILE *there = fdopen(sv[0], "r+"), *here = fdopen(sv[1], "r+");
    R(fileno(there) == sv[0], "fileno");
    R(fprintf(there, "%s %d\n", "line", 1), "fprintf");
    R(fflush(there), "fflush");
    YES(fgets(b, sizeof b, here) && strcmp(b, "line 1\n") == 0, "fgets");
    R(fputs("answer\n", here) >= 0, "fputs");
    R(fflush(here), "fflush-2");
    size_t size = 0;
    char *line = NULL;
    R(getline(&line, &size, there), "getline");
    R(fclose(there), "fclose");
    R(fgetc(here), "end");
    R(feof(here) != 0, "feof");
    R(fclose(here), "fclose-2");
    R(fcntl(sv[0], F_GETFD), "closed");
    R(read(sv[0], b, 1), "closed.read");
}

CASE(beside_calls) {
    unix_pair(SOCK_STREAM, sv);
    NEED(write(sv[0], "x", 1) == 1 && recv(sv[1], b, 1, 0) == 1);
    FILE *stream = fdopen(sv[1], "r");
    R(write(sv[0], "from write\n", 11), "write");
    YES(fgets(b, sizeof b, stream) != NULL, "fgets");
    R(dprintf(sv[0], "%05d", 42), "dprintf");
    R(recv(sv[1], b, 5, 0), "recv");
    TEXT(b, 5, "bytes");
    struct deed d = {0};
    start(&d, do_recv, sv[1]);
    WAITS(&d, "recv-waits");
    R(dprintf(sv[0], "later"), "dprintf-2");
    E(&d, "recv-2");
}

CASE(number_after_fclose) {
    unix_pair(SOCK_STREAM, sv);
    NEED(write(sv[0], "x", 1) == 1 && recv(sv[1], b, 1, 0) == 1);
    int number = sv[1];
    FILE *stream = fdopen(sv[1], "r+");
    R(fclose(stream), "fclose");
    int p[2];
    NEED(pipe(p) == 0);
    R(p[0] == number, "same-number");
    R(write(p[1], "abc", 3), "write");
    R(read(p[0], b, 8), "read");
    R(recv(p[0], b, 8, 0), "recv");
}

CASE(reopened) {
    unix_pair(SOCK_STREAM, sv);
    NEED(write(sv[0], "x", 1) == 1 && recv(sv[1], b, 1, 0) == 1);
    FILE *stream = fdopen(sv[1], "r+");
    stream = freopen("/dev/zero", "r", stream);
    YES(stream != NULL, "freopen");
    R(fread(b, 1, 8, stream), "fread");
    R(fileno(stream) == sv[1], "same-number");
    R(read(sv[1], b, 8), "read");
    signal(SIGPIPE, SIG_IGN);
    R(write(sv[0], "x", 1), "old-end");
}

CASE(broken) {
    signal(SIGPIPE, SIG_IGN);
    unix_pair(SOCK_STREAM, sv);
    FILE *stream = fdopen(sv[0], "w");
    close(sv[1]);
    R(fputs("lost", stream) >= 0, "fputs");
    R(fflush(stream), "fflush");
    R(ferror(stream) != 0, "ferror");
    R(fclose(stream), "fclose");
}

CASE(wrong) {
    unix_pair(SOCK_STREAM, sv);
    YES(fdopen(499, "r") == NULL, "closed");
    YES(fdopen(sv[0], "zzz") == NULL, "mode");
    FILE *stream = fdopen(sv[0], "r+");
    R(fseek(stream, 1, SEEK_SET), "fseek");
    R(ftell(stream), "ftell");
    close(sv[0]);
    R(fputc('x', stream) >= 0, "fputc");
    R(fflush(stream), "fflush-closed");
    R(fclose(stream), "fclose-closed");
}

static void note(int signal) { (void)signal; }
DEED(by_fgetc, fgetc((FILE *)d->bytes))

CASE(interrupted) {
    handle(SIGUSR1, note, 0);
    unix_pair(SOCK_STREAM, sv);
    FILE *stream = fdopen(sv[0], "r");
    struct deed d = {.bytes = (char *)stream};
    start(&d, by_fgetc, 0);
    WAITS(&d, "waits");
    pthread_kill(d.other.thread, SIGUSR1);
    E(&d, "fgetc");
    YES(ferror(stream) && !feof(stream), "ferror");
}

CASE(standard_ones) {
    pid_t child = fork();
    if (child == 0) {
        unix_pair(SOCK_STREAM, sv);
        dup2(sv[0], 0), dup2(sv[0], 1);
        NEED(write(sv[1], "input\n", 6) == 6);
        char line[16];
        _exit(scanf("%15s", line) == 1 && printf("out\n") == 4 && fflush(stdout) == 0 && recv(sv[1], b, 8, 0) == 4 ? 0 : 1);
    }
    STATUS(child, "child");
}

CASE(unbuffered) {
    unix_pair(SOCK_STREAM, sv);
    FILE *stream = fdopen(sv[0], "w");
    R(setvbuf(stream, NULL, _IONBF, 0), "setvbuf");
    R(fwrite("abc", 1, 3, stream), "fwrite");
    R(recv(sv[1], b, 8, MSG_DONTWAIT), "recv");
    static char big[300000];
    struct deed d = {.bytes = big, .size = sizeof big};
    start(&d, do_recv, sv[1]);
    d.flags = 0;
    R(fwrite(big, 1, 100, stream), "more");
    E(&d, "recv-2");
}

CASE(cookie_and_memory) {
    FILE *memory = fmemopen(b, sizeof b, "w");
    R(fprintf(memory, "text"), "fmemopen");
    R(fclose(memory), "fclose");
    FILE *command = popen("cat >/dev/null; exit 3", "w");
    R(fputs("to cat", command) >= 0, "popen");
    R(WEXITSTATUS(pclose(command)), "pclose");
    command = popen("echo hello", "r");
    YES(fgets(b, sizeof b, command) && strcmp(b, "hello\n") == 0, "popen-read");
    R(pclose(command), "pclose-read");
}
