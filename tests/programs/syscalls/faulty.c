/* Broken on purpose, a fault at a time: the suite has to notice. */
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

#ifdef FAULT_ERRNO_CHANGED
ssize_t recv(int fd, void *bytes, size_t size, int flags) {
    ssize_t n = REAL(recv)(fd, bytes, size, flags);
    if (n >= 0) errno = EAGAIN;
    return n;
}
#endif

#ifdef FAULT_ONE_AT_A_TIME
static pthread_mutex_t one = PTHREAD_MUTEX_INITIALIZER;
ssize_t recv(int fd, void *bytes, size_t size, int flags) {
    pthread_mutex_lock(&one);
    ssize_t n = REAL(recv)(fd, bytes, size, flags);
    pthread_mutex_unlock(&one);
    return n;
}
ssize_t send(int fd, const void *bytes, size_t size, int flags) {
    pthread_mutex_lock(&one);
    ssize_t n = REAL(send)(fd, bytes, size, flags);
    pthread_mutex_unlock(&one);
    return n;
}
#endif

#ifdef FAULT_NEVER_RESTARTED
ssize_t recv(int fd, void *bytes, size_t size, int flags) {
    // poll ends with EINTR whatever the handler says.
    struct pollfd p = {.fd = fd, .events = POLLIN};
    if (!(flags & MSG_DONTWAIT) && poll(&p, 1, 5000) < 0) return -1;
    return REAL(recv)(fd, bytes, size, flags);
}
#endif

#ifdef FAULT_PIPE_SIGNAL_LOST
ssize_t send(int fd, const void *bytes, size_t size, int flags) {
    return REAL(send)(fd, bytes, size, flags | MSG_NOSIGNAL);
}
#endif

#ifdef FAULT_CLOEXEC_LOST
int accept4(int fd, struct sockaddr *address, socklen_t *length, int flags) {
    return REAL(accept4)(fd, address, length, flags & ~SOCK_CLOEXEC);
}
#endif

#ifdef FAULT_CANCELLED_LATER
ssize_t recv(int fd, void *bytes, size_t size, int flags) {
    int before;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
    struct pollfd p = {.fd = fd, .events = POLLIN};
    if (!(flags & MSG_DONTWAIT)) poll(&p, 1, 2000);
    ssize_t n = REAL(recv)(fd, bytes, size, flags | MSG_DONTWAIT);
    pthread_setcancelstate(before, NULL);
    return n;
}
#endif

#ifdef FAULT_STALE_NUMBER
static char is_socket[1024];
int socketpair(int domain, int type, int protocol, int pair[2]) {
    int code = REAL(socketpair)(domain, type, protocol, pair);
    if (code == 0) is_socket[pair[0] & 1023] = is_socket[pair[1] & 1023] = 1;
    return code;
}
ssize_t recv(int fd, void *bytes, size_t size, int flags) {
    // As if what the table says were still so.
    ssize_t n = REAL(recv)(fd, bytes, size, flags);
    return n < 0 && errno == ENOTSOCK && is_socket[fd & 1023] ? 0 : n;
}
#endif

#ifdef FAULT_TIMEOUT_IGNORED
ssize_t recv(int fd, void *bytes, size_t size, int flags) {
    struct pollfd p = {.fd = fd, .events = POLLIN};
    if (!(flags & MSG_DONTWAIT)) poll(&p, 1, -1);
    return REAL(recv)(fd, bytes, size, flags);
}
#endif

#ifdef FAULT_DESCRIPTOR_KEPT
__attribute__((constructor)) static void keep(void) { dup(2); }
#endif
