/* For servers that cannot be told an address: who binds to all of them gets the loopback
   interface's. */
#include <dlfcn.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>

int bind(int fd, const struct sockaddr *address, socklen_t length) {
    int (*next)(int, const struct sockaddr *, socklen_t) =
        (int (*)(int, const struct sockaddr *, socklen_t))dlsym(RTLD_NEXT, "bind");
    struct sockaddr_in here;
    if (address && length >= sizeof here && address->sa_family == AF_INET) {
        memcpy(&here, address, sizeof here);
        if (here.sin_addr.s_addr == htonl(INADDR_ANY)) here.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        return next(fd, (struct sockaddr *)&here, sizeof here);
    }
    return next(fd, address, length);
}
