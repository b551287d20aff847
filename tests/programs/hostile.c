// hostile MODE [CPU_SECONDS]: what a program can do to confuse whoever looks at it. It says `ready`.
//
// anonymous      code without a file is mapped, and not run; waits for a line
// names          its name, its thread's and its code's are escape sequences and markup
// lost-stack     main -> lost -> elsewhere runs with a stack pointer that points nowhere
// cyclic-cfi     main -> cyclic, whose unwind table says that it was called from where it is
// endless-expression  main -> endless, whose frame is the value of an expression that never ends
// huge-map       its perf map is 4 GB long, most of it a hole
// fifo-map       its perf map is a FIFO that nobody writes to
// link-map PATH  its perf map is a link to PATH
// truncate PATH  burns half of the time in plugin_work of the shared object at PATH, then cuts that
//                file down to nothing
// fake-vm PATH DIR  as user 65534, in namespaces of its own: says that it is a Java VM by mapping PATH, a
//                `libjvm.so`, runs code without a file, and has DIR in the place of its /tmp; says
//                `cannot` where that is not allowed
// pages          maps 60,000 pages of its own file as code
// file-stack FILE  its stack is FILE, mapped, of which it has touched what it stands on; goes there after
//                a line from its input
#define _GNU_SOURCE
#include "cpu.h"
#include <dlfcn.h>
#include <fcntl.h>
#include <grp.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#define HOSTILE "\x1b]0;pwned\x07\x1b[31m<script>alert(1)</script>\"'&;\r"

typedef void (*code_fn)(uint64_t rounds);

#if defined(__x86_64__)
static const unsigned char loop_code[] = {
    0x55, 0x48, 0x89, 0xe5,       // push rbp; mov rbp, rsp
    0x48, 0xff, 0xcf, 0x75, 0xfb, // dec rdi; jnz -5
    0x5d, 0xc3,                   // pop rbp; ret
};
#else
static const unsigned int loop_code[] = {
    0xa9bf7bfd, 0x910003fd,             // stp x29, x30, [sp, #-16]!; mov x29, sp
    0xf1000400, 0x54ffffe1,             // subs x0, x0, #1; b.ne -4
    0xa8c17bfd, 0xd65f03c0,             // ldp x29, x30, [sp], #16; ret
};
#endif

static code_fn make_code(void) {
    void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memcpy(page, loop_code, sizeof loop_code);
    mprotect(page, 4096, PROT_READ | PROT_EXEC);
    return (code_fn)page;
}

FUNCTION static void run_code(code_fn code, uint64_t end) {
    while (cpu_ns() < end) {
        code(1000000);
    }
    NO_TAIL_CALL();
}

static const char *map_path(void) {
    static char path[64];
    snprintf(path, sizeof path, "/tmp/perf-%d.map", (int)getpid());
    return path;
}

static void write_map(code_fn code, const char *name, off_t hole) {
    FILE *map = fopen(map_path(), "w");
    fprintf(map, "%lx 1000 %s\n", (unsigned long)code, name);
    fflush(map);
    if (hole > 0 && ftruncate(fileno(map), hole) != 0) {
        exit(3);
    }
    fclose(map);
}

// Some hundred milliseconds with a stack pointer of no use; no call and no signal may come.
FUNCTION static void elsewhere(uint64_t rounds, uint64_t sp) {
#if defined(__x86_64__)
    __asm__ volatile("mov %%rsp, %%r15\n mov %1, %%rsp\n"
                     "1: dec %0\n jnz 1b\n mov %%r15, %%rsp\n"
                     : "+r"(rounds)
                     : "r"(sp)
                     : "r15", "cc", "memory");
#else
    __asm__ volatile("mov x15, sp\n mov sp, %1\n"
                     "1: subs %0, %0, #1\n b.ne 1b\n mov sp, x15\n"
                     : "+r"(rounds)
                     : "r"(sp)
                     : "x15", "cc", "memory");
#endif
}

FUNCTION static void lost(uint64_t rounds) {
    elsewhere(rounds, 0x10);
    NO_TAIL_CALL();
}

// Memory for a stack: its first pages are there, the others are asked of the file system, one by one,
// by whoever reads them first.
static uint64_t file_stack(const char *path) {
    const size_t len = 2 << 20, touched = 64 << 10;
    int file = open(path, O_RDONLY);
    char *memory = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE, file, 0);
    if (file < 0 || memory == MAP_FAILED) {
        return 0;
    }
    close(file);
    madvise(memory, len, MADV_RANDOM);
    memset(memory, 1, touched);
    return (uint64_t)memory + touched - (20 << 10);
}

// Unwind tables as assembler writes them: register 16 (the return address) keeps its value; the
// frame is what `skip -3` computes.
#if defined(__x86_64__)
FUNCTION static void cyclic(uint64_t rounds) {
    __asm__ volatile(".cfi_remember_state\n .cfi_escape 0x08, 0x10\n"
                     "1: dec %0\n jnz 1b\n .cfi_restore_state\n"
                     : "+r"(rounds)
                     :
                     : "cc", "memory");
}

FUNCTION static void endless(uint64_t rounds) {
    __asm__ volatile(".cfi_remember_state\n .cfi_escape 0x0f, 3, 0x2f, 0xfd, 0xff\n"
                     "1: dec %0\n jnz 1b\n .cfi_restore_state\n"
                     : "+r"(rounds)
                     :
                     : "cc", "memory");
}
#else
static void cyclic(uint64_t rounds) { lost(rounds); }
static void endless(uint64_t rounds) { lost(rounds); }
#endif

static void on_quit(int number) { (void)number; }

static int write_text(const char *path, const char *text) {
    int file = open(path, O_WRONLY);
    ssize_t len = (ssize_t)strlen(text);
    int done = file >= 0 && write(file, text, (size_t)len) == len;
    close(file);
    return done;
}

// Everything that a user may do to lead root astray who looks for a VM's /tmp.
static int become_vm(const char *library, const char *directory) {
    int file = open(library, O_RDONLY);
    if (setgroups(0, NULL) != 0 || setresgid(65534, 65534, 65534) != 0 ||
        setresuid(65534, 65534, 65534) != 0) {
        return 0;
    }
    // Otherwise its files in /proc are root's.
    prctl(PR_SET_DUMPABLE, 1);
    if (unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0 ||
        !write_text("/proc/self/uid_map", "0 65534 1\n") ||
        mount(directory, "/tmp", NULL, MS_BIND | MS_REC, NULL) != 0) {
        return 0;
    }
    struct sigaction action = {.sa_handler = on_quit};
    return mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, file, 0) != MAP_FAILED &&
           sigaction(SIGQUIT, &action, NULL) == 0;
}

static void map_pages(void) {
    int file = open("/proc/self/exe", O_RDONLY);
    for (int page = 0; page < 60000; page++) {
        mmap(NULL, 4096, page % 2 ? PROT_READ | PROT_EXEC : PROT_READ, MAP_PRIVATE, file, 0);
    }
    close(file);
}

int main(int argc, char **argv) {
    const char *mode = argc > 1 ? argv[1] : "";
    uint64_t end = (uint64_t)(1e9 * (argc > 2 ? atof(argv[2]) : 0));
    code_fn code = make_code();
    uint64_t stack = 0;
    if (strcmp(mode, "file-stack") == 0) {
        if (argc < 4 || (stack = file_stack(argv[3])) == 0) {
            return 3;
        }
    } else if (strcmp(mode, "names") == 0) {
        prctl(PR_SET_NAME, "\x1b[31m<b>&\r\n\x07");
        write_map(code, HOSTILE, 0);
    } else if (strcmp(mode, "huge-map") == 0) {
        write_map(code, "first", (off_t)4 << 30);
    } else if (strcmp(mode, "fifo-map") == 0) {
        mkfifo(map_path(), 0666);
    } else if (strcmp(mode, "link-map") == 0 && argc > 3) {
        if (symlink(argv[3], map_path()) != 0) {
            return 3;
        }
    } else if (strcmp(mode, "pages") == 0) {
        map_pages();
    } else if (strcmp(mode, "fake-vm") == 0 && argc > 4 && !become_vm(argv[3], argv[4])) {
        printf("cannot\n");
        return 0;
    }
    if (strcmp(mode, "truncate") == 0 && argc > 3) {
        void *plugin = dlopen(argv[3], RTLD_NOW);
        void (*work)(uint64_t) = plugin ? (void (*)(uint64_t))dlsym(plugin, "plugin_work") : NULL;
        if (work == NULL) {
            return 3;
        }
        work(end / 2);
        if (truncate(argv[3], 0) != 0) {
            return 3;
        }
        run_code(code, end);
        // Ending in order would run code of the plugin.
        _exit(0);
    }
    printf("ready %d %lx\n", (int)getpid(), (unsigned long)code);
    fflush(stdout);
    if (strcmp(mode, "lost-stack") == 0) {
        while (cpu_ns() < end) {
            lost(20000000);
        }
    } else if (stack != 0) {
        getchar();
        while (cpu_ns() < end) {
            elsewhere(20000000, stack);
        }
    } else if (strcmp(mode, "cyclic-cfi") == 0) {
        while (cpu_ns() < end) {
            cyclic(20000000);
        }
    } else if (strcmp(mode, "endless-expression") == 0) {
        while (cpu_ns() < end) {
            endless(20000000);
        }
    } else if (end > 0) {
        run_code(code, end);
    } else {
        getchar();
    }
    return 0;
}
