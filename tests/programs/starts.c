// Starts a thread so many times, each of which keeps a block of 1000 bytes, and fails if one cannot be started.
#include <pthread.h>
#include <stdlib.h>

void *volatile kept;

__attribute__((noinline)) static void *keeps(void *unused) {
    kept = malloc(1000);
    return unused;
}

int main(int argc, char **argv) {
    int rounds = argc > 1 ? atoi(argv[1]) : 1;
    for (int round = 0; round < rounds; round++) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, keeps, NULL) != 0) {
            return 1;
        }
        pthread_join(thread, NULL);
    }
    return 0;
}
