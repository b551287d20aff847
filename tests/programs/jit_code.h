// Machine code with frame pointers, as runtimes make it: a loop that counts its argument down, and a
// function that passes its first argument to its second.
#ifndef JIT_CODE_H
#define JIT_CODE_H

#if defined(__x86_64__)
static const unsigned char inner_code[] = {
    0x55,                         // push rbp
    0x48, 0x89, 0xe5,             // mov rbp, rsp
    0x48, 0xff, 0xcf,             // dec rdi
    0x75, 0xfb,                   // jnz -5
    0x5d,                         // pop rbp
    0xc3,                         // ret
};
static const unsigned char outer_code[] = {
    0x55,                         // push rbp
    0x48, 0x89, 0xe5,             // mov rbp, rsp
    0xff, 0xd6,                   // call rsi
    0x5d,                         // pop rbp
    0xc3,                         // ret
};
#elif defined(__aarch64__)
static const unsigned int inner_code[] = {
    0xa9bf7bfd,                   // stp x29, x30, [sp, #-16]!
    0x910003fd,                   // mov x29, sp
    0xf1000400,                   // subs x0, x0, #1
    0x54ffffe1,                   // b.ne -4
    0xa8c17bfd,                   // ldp x29, x30, [sp], #16
    0xd65f03c0,                   // ret
};
static const unsigned int outer_code[] = {
    0xa9bf7bfd,                   // stp x29, x30, [sp, #-16]!
    0x910003fd,                   // mov x29, sp
    0xd63f0020,                   // blr x1
    0xa8c17bfd,                   // ldp x29, x30, [sp], #16
    0xd65f03c0,                   // ret
};
#else
#error "no code for this architecture"
#endif

#endif
