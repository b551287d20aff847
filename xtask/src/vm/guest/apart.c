// apart PROGRAM [ARGUMENT...]: runs a program in process, mount and control group namespaces of its own; ends as it does.
#define _GNU_SOURCE
#include <sched.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

int main(int argc, char **argv) {
    int status;
    if (argc < 2) {
        return 2;
    }
    if (unshare(CLONE_NEWPID | CLONE_NEWNS | CLONE_NEWCGROUP)) {
        perror("unshare");
        return 1;
    }
    pid_t child = fork();
    if (child == 0) {
        mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL);
        execvp(argv[1], argv + 1);
        perror(argv[1]);
        _exit(127);
    }
    return waitpid(child, &status, 0) == child && WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}
