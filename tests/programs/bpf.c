// bpf [CPU_SECONDS]: loads a BPF program named flame_loop, runs it in the kernel for that time, and
// unloads it again. Ends with status 3 where the kernel or the rights do not allow that.
#include "cpu.h"
#include <linux/bpf.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { INSTRUCTIONS = 4000 };

static long bpf(int command, union bpf_attr *attributes) {
    return syscall(SYS_bpf, command, attributes, sizeof *attributes);
}

static int load(void) {
    static struct bpf_insn code[INSTRUCTIONS];
    for (int i = 0; i < INSTRUCTIONS; i++) {
        // r0 = 0, then r0 += i again and again, then exit.
        code[i].code = i == 0 ? BPF_ALU64 | BPF_MOV | BPF_K
                     : i == INSTRUCTIONS - 1 ? BPF_JMP | BPF_EXIT : BPF_ALU64 | BPF_ADD | BPF_K;
        code[i].imm = i == INSTRUCTIONS - 1 ? 0 : i;
    }
    union bpf_attr attributes;
    memset(&attributes, 0, sizeof attributes);
    attributes.prog_type = BPF_PROG_TYPE_SOCKET_FILTER;
    attributes.insns = (uint64_t)code;
    attributes.insn_cnt = INSTRUCTIONS;
    attributes.license = (uint64_t) "";
    strcpy(attributes.prog_name, "flame_loop");
    return (int)bpf(BPF_PROG_LOAD, &attributes);
}

FUNCTION static int run(int program, uint64_t end) {
    static char packet[64];
    while (cpu_ns() < end) {
        union bpf_attr attributes;
        memset(&attributes, 0, sizeof attributes);
        attributes.test.prog_fd = (uint32_t)program;
        attributes.test.data_in = (uint64_t)packet;
        attributes.test.data_size_in = sizeof packet;
        attributes.test.repeat = 10000;
        if (bpf(BPF_PROG_TEST_RUN, &attributes) != 0) {
            return -1;
        }
    }
    return 0;
}

int main(int argc, char **argv) {
    uint64_t end = ns_argument(argc, argv, 1, 1.0) + cpu_ns();
    int program = load();
    if (program < 0 || run(program, end) != 0) {
        perror("bpf");
        return 3;
    }
    return close(program);
}
