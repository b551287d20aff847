// memfd PROGRAM ARGUMENTS: runs a copy of PROGRAM that is nowhere but in memory.
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

int main(int argc, char **argv) {
    extern char **environ;
    struct stat status;
    int file = argc > 1 ? open(argv[1], O_RDONLY) : -1;
    int memory = memfd_create("copied", MFD_CLOEXEC);
    if (file < 0 || memory < 0 || fstat(file, &status) < 0) {
        perror("memfd");
        return 1;
    }
    for (off_t left = status.st_size; left > 0;) {
        ssize_t sent = sendfile(memory, file, 0, (size_t)left);
        if (sent <= 0) {
            perror("sendfile");
            return 1;
        }
        left -= sent;
    }
    fexecve(memory, argv + 1, environ);
    perror("fexecve");
    return 1;
}
