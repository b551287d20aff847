// terminal FILE PROGRAM [ARGUMENT...]: runs a program on a terminal, and keeps what it shows there.
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

int main(int argc, char **argv) {
    char bytes[4096];
    ssize_t len;
    int status, terminal = posix_openpt(O_RDWR | O_NOCTTY);
    if (argc < 3 || terminal < 0 || grantpt(terminal) || unlockpt(terminal)) {
        perror("terminal");
        return 1;
    }
    const char *name = ptsname(terminal);
    pid_t child = fork();
    if (child == 0) {
        int other = open(name, O_RDWR);
        for (int to = 0; to <= 2; to++) {
            dup2(other, to);
        }
        execvp(argv[2], argv + 2);
        _exit(127);
    }
    FILE *file = fopen(argv[1], "w");
    // The program is the only one that has the other end, once it runs.
    while (file != NULL && (len = read(terminal, bytes, sizeof bytes)) > 0) {
        fwrite(bytes, 1, (size_t)len, file);
    }
    if (file == NULL || fclose(file)) {
        perror(argv[1]);
        return 1;
    }
    return waitpid(child, &status, 0) == child && WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}
