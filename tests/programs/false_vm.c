// false_vm MODE CPU_SECONDS [FILE]: says of itself what a Java VM says, and lies. Built with all its
// names for others to see, and run from a file that is called `libjvm.so`. It says `ready`.
//
// names     all its frames are in one compiled method, each at another place; at each place 256 methods
//           are inlined, whose names have 2 KiB each
// methods   the same with one method at each place
// adapter   runs in 8 MiB of what goes from compiled code to the interpreter
// blobs     goes round in 2,000 compiled methods of 400 KiB
// tables    its tables have 20,000 lines of names of 200 bytes, and it starts processes that say the same
// endless   its heaps of code have terabytes, and its maps of them lead in circles
// changing  what it says changes while it is read
// stuck FILE WORD  its tables are in FILE, mapped, of which it has touched nothing, and so are the words that it
//           was started by: WORD has 16 KiB or more
#define _GNU_SOURCE
#include "cpu.h"
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

typedef struct {
    const char *type, *field, *unused;
    int32_t is_static;
    uint64_t offset;
    void *address;
} Struct;
typedef struct {
    const char *type;
    uint64_t size;
} Type;
typedef struct {
    const char *name;
    int32_t value;
} Int;

// The columns of the tables, as a VM has them.
uint64_t gHotSpotVMStructEntryTypeNameOffset = offsetof(Struct, type);
uint64_t gHotSpotVMStructEntryFieldNameOffset = offsetof(Struct, field);
uint64_t gHotSpotVMStructEntryIsStaticOffset = offsetof(Struct, is_static);
uint64_t gHotSpotVMStructEntryOffsetOffset = offsetof(Struct, offset);
uint64_t gHotSpotVMStructEntryAddressOffset = offsetof(Struct, address);
uint64_t gHotSpotVMStructEntryArrayStride = sizeof(Struct);
uint64_t gHotSpotVMTypeEntryTypeNameOffset = offsetof(Type, type);
uint64_t gHotSpotVMTypeEntrySizeOffset = offsetof(Type, size);
uint64_t gHotSpotVMTypeEntryArrayStride = sizeof(Type);
uint64_t gHotSpotVMIntConstantEntryNameOffset = offsetof(Int, name);
uint64_t gHotSpotVMIntConstantEntryValueOffset = offsetof(Int, value);
uint64_t gHotSpotVMIntConstantEntryArrayStride = sizeof(Int);

// What it has: each structure has the fields that are read, and no others.
typedef struct {
    char *low, *high;
} Space;
typedef struct {
    Space memory, map;
    int32_t log_segment;
} Heap;
typedef struct {
    int32_t len, unused;
    Heap **data;
} List;
typedef struct {
    const char *name;
    int32_t size, frame_complete, frame_size, unused;
    char *code_begin, *code_end;
    // Of a compiled method.
    void *method;
    char *deoptimize[2], *scopes, *verified_entry;
    int32_t stub, metadata, pcs, pcs_end, original_pc, id;
} Blob;
typedef struct {
    void *unused, *fixed;
} Method;
typedef struct {
    void *constants;
    uint16_t code_size, name;
    uint32_t unused;
} Fixed;
typedef struct {
    uint16_t len;
    char text[1024];
} Symbol;
typedef struct {
    void *unused, *name;
} Class;

#define LINE(type, name, of, field) {type, name, "", 0, offsetof(of, field), NULL}
#define ONCE(type, name, variable) {type, name, "", 1, 0, &(variable)}

static int32_t version = 17;
static List list;
static List *heaps = &list;
static char *low_bound, *high_bound, *entry_return;
static uint64_t codelets[4];
static uint64_t *queue = codelets;

static Struct structs[64] = {
    ONCE("Abstract_VM_Version", "_vm_major_version", version),
    ONCE("StubRoutines", "_call_stub_return_address", entry_return),
    ONCE("CodeCache", "_heaps", heaps),
    ONCE("CodeCache", "_low_bound", low_bound),
    ONCE("CodeCache", "_high_bound", high_bound),
    ONCE("AbstractInterpreter", "_code", queue),
    LINE("CodeHeap", "_memory", Heap, memory),
    LINE("CodeHeap", "_segmap", Heap, map),
    LINE("CodeHeap", "_log2_segment_size", Heap, log_segment),
    LINE("VirtualSpace", "_low", Space, low),
    LINE("VirtualSpace", "_high", Space, high),
    LINE("GrowableArrayBase", "_len", List, len),
    LINE("GrowableArray<int>", "_data", List, data),
    {"HeapBlock::Header", "_used", "", 0, 0, NULL},
    LINE("CodeBlob", "_name", Blob, name),
    LINE("CodeBlob", "_size", Blob, size),
    LINE("CodeBlob", "_frame_complete_offset", Blob, frame_complete),
    LINE("CodeBlob", "_frame_size", Blob, frame_size),
    LINE("CodeBlob", "_code_begin", Blob, code_begin),
    LINE("CodeBlob", "_code_end", Blob, code_end),
    LINE("CompiledMethod", "_method", Blob, method),
    LINE("CompiledMethod", "_deopt_handler_begin", Blob, deoptimize[0]),
    LINE("CompiledMethod", "_deopt_mh_handler_begin", Blob, deoptimize[1]),
    LINE("CompiledMethod", "_scopes_data_begin", Blob, scopes),
    LINE("nmethod", "_verified_entry_point", Blob, verified_entry),
    LINE("nmethod", "_stub_offset", Blob, stub),
    LINE("nmethod", "_metadata_offset", Blob, metadata),
    LINE("nmethod", "_scopes_pcs_offset", Blob, pcs),
    LINE("nmethod", "_dependencies_offset", Blob, pcs_end),
    LINE("nmethod", "_orig_pc_offset", Blob, original_pc),
    LINE("nmethod", "_compile_id", Blob, id),
    {"PcDesc", "_pc_offset", "", 0, 0, NULL},
    {"PcDesc", "_scope_decode_offset", "", 0, 4, NULL},
    LINE("Method", "_constMethod", Method, fixed),
    LINE("ConstMethod", "_constants", Fixed, constants),
    LINE("ConstMethod", "_code_size", Fixed, code_size),
    LINE("ConstMethod", "_name_index", Fixed, name),
    {"ConstantPool", "_pool_holder", "", 0, 0, NULL},
    {"ConstantPool", "_length", "", 0, 8, NULL},
    LINE("Klass", "_name", Class, name),
    LINE("Symbol", "_length", Symbol, len),
    LINE("Symbol", "_body", Symbol, text),
    {"StubQueue", "_stub_buffer", "", 0, 0, NULL},
    {"StubQueue", "_buffer_limit", "", 0, 8, NULL},
    {"InterpreterCodelet", "_size", "", 0, 0, NULL},
    {"InterpreterCodelet", "_description", "", 0, 8, NULL},
};
static Type types[16] = {
    {"HeapBlock", 16},   {"CodeBlob", offsetof(Blob, method)},
    {"nmethod", sizeof(Blob)}, {"PcDesc", 8},
    {"ConstMethod", sizeof(Fixed)}, {"ConstantPool", 16},
    {"InterpreterCodelet", 16},
};
static Int ints[4] = {{"frame::interpreter_frame_sender_sp_offset", -1}};

void *gHotSpotVMStructs = structs;
void *gHotSpotVMTypes = types;
void *gHotSpotVMIntConstants = ints;

#define SEGMENT 12
#define METHODS 60000
#define NAMES 50000
#define DEPTH 1000
#define CHILDREN 8

static Heap heap;
static Heap *data[1] = {&heap};
static uint64_t state = 88172645463325252u;

static uint64_t next(void) {
    state ^= state << 13, state ^= state >> 7, state ^= state << 17;
    return state;
}

static void *room(size_t len, int rights) {
    int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
    void *memory = mmap(NULL, len, rights, flags, -1, 0);
    return memory == MAP_FAILED ? NULL : memory;
}

// One heap with room for so many bytes.
static char *make_heap(size_t len) {
    char *memory = room(len, PROT_READ | PROT_WRITE | PROT_EXEC);
    unsigned char *map = room((len >> SEGMENT) + 4096, PROT_READ | PROT_WRITE);
    heap.memory = (Space){memory, memory + len};
    heap.map = (Space){(char *)map, (char *)map + (len >> SEGMENT)};
    heap.log_segment = SEGMENT;
    list = (List){.len = 1, .data = data};
    low_bound = memory, high_bound = memory + len, entry_return = memory + 100;
    return memory;
}

// A block in use of that length, whose piece of code has that name; where its code is to be.
static Blob *make_blob(char *block, size_t len, const char *name) {
    unsigned char *map = (unsigned char *)heap.map.low + ((block - heap.memory.low) >> SEGMENT);
    for (size_t segment = 0; segment < len >> SEGMENT; segment++) {
        map[segment] = segment == 0 ? 0 : (unsigned char)(segment < 254 ? segment : 254);
    }
    block[0] = 1;
    Blob *blob = (Blob *)(block + 16);
    char *start = (char *)blob;
    blob->name = name, blob->size = (int32_t)len - 16, blob->frame_size = 2;
    blob->code_begin = start + sizeof *blob, blob->code_end = start + blob->size;
    blob->verified_entry = blob->code_begin;
    blob->id = (int32_t)(next() & 0xffff);
    return blob;
}

static Method methods[METHODS];
static Fixed fixed[METHODS];
static void **pool;
static Class class;

// As many methods as are known at a time, with long names.
static void make_methods(void) {
    static Symbol class_name = {1000, ""};
    memset(class_name.text, 'c', sizeof class_name.text);
    class.name = &class_name;
    pool = room((NAMES + 4) * sizeof *pool, PROT_READ | PROT_WRITE);
    pool[0] = &class, pool[1] = (void *)(uintptr_t)NAMES;
    for (unsigned number = 1; number < NAMES; number++) {
        Symbol *symbol = malloc(sizeof *symbol);
        symbol->len = 1000;
        memset(symbol->text, 'm', 1000);
        symbol->text[snprintf(symbol->text, 16, "%u", number)] = 'n';
        pool[2 + number] = symbol;
    }
    for (unsigned number = 0; number < METHODS; number++) {
        fixed[number] = (Fixed){pool, 10, (uint16_t)(1 + number % (NAMES - 1)), 0};
        methods[number].fixed = &fixed[number];
    }
}

static size_t put(unsigned char *at, size_t value) {
    if (value < 192) {
        at[0] = (unsigned char)value;
        return 1;
    }
    size_t low = 192 + (value - 192) % 64, rest = (value - low) >> 6;
    at[0] = (unsigned char)low;
    if (rest < 192) {
        at[1] = (unsigned char)rest;
        return 2;
    }
    at[1] = (unsigned char)(192 + (rest - 192) % 64);
    at[2] = (unsigned char)((rest - at[1]) >> 6);
    return 3;
}

// One of the methods at a place: inlined by that of `sender`, 0 = by none.
static size_t put_scope(unsigned char *scopes, size_t at, size_t sender, size_t method) {
    at += put(scopes + at, sender);
    at += put(scopes + at, 1 + method);
    return at + put(scopes + at, 1);
}

// A compiled method with its own code first, and then entries for each 16th byte of it: all have the
// same callers, and are other methods themselves.
static char *make_compiled(char *block, size_t len, size_t code, unsigned inlined) {
    Blob *blob = make_blob(block, len, "nmethod");
    char *start = (char *)blob;
    size_t entries = code / 16, metadata = 4096;
    blob->code_end = blob->code_begin + code;
    blob->method = &methods[0];
    blob->stub = (int32_t)(blob->code_end - start);
    blob->metadata = blob->stub;
    void **known = (void **)(start + blob->metadata);
    for (size_t at = 0; at < metadata; at++) {
        known[at] = &methods[at == 0 ? 0 : next() % METHODS];
    }
    blob->scopes = start + blob->metadata + metadata * 8;
    unsigned char *scopes = (unsigned char *)blob->scopes;
    size_t at = 1, last = 0;
    for (unsigned depth = 0; depth < inlined; depth++) {
        size_t here = at;
        at = put_scope(scopes, at, last, depth == 0 ? 0 : next() % metadata);
        last = here;
    }
    int32_t *pairs = (int32_t *)(scopes + entries * 8 + 4096);
    for (size_t entry = 0; entry < entries; entry++) {
        pairs[2 * entry] = (int32_t)(entry * 16), pairs[2 * entry + 1] = (int32_t)at;
        at = put_scope(scopes, at, last, entry % metadata);
    }
    blob->pcs = (int32_t)((char *)pairs - start);
    blob->pcs_end = blob->pcs + (int32_t)(entries * 8);
    return blob->code_begin;
}

static const unsigned char loop_code[] = {
    0x48, 0xff, 0xcf, 0x75, 0xfb, // dec rdi; jnz -5
    0xff, 0xe6,                   // jmp *rsi
};

// Runs code with a stack of its own: frames of two words, each of which returns to another place.
FUNCTION static void run(char *code, uint64_t rounds, uint64_t *stack) {
    __asm__ volatile("mov %%rsp, %%r15\n lea 1f(%%rip), %%rsi\n mov %0, %%rdi\n mov %2, %%rsp\n"
                     "jmp *%1\n 1: mov %%r15, %%rsp\n"
                     :
                     : "r"(rounds), "r"(code), "r"(stack)
                     : "r15", "rsi", "rdi", "cc", "memory");
}

static void *change(void *unused) {
    char *parts[] = {(char *)&heap, (char *)&list, (char *)methods, (char *)fixed,
                     heap.memory.low, heap.map.low, (char *)structs, (char *)types};
    size_t lens[] = {sizeof heap, sizeof list, 4096, 4096, 4096, 4096, sizeof structs, sizeof types};
    static char saved[8][8192];
    for (int part = 0; part < 8; part++) {
        memcpy(saved[part], parts[part], lens[part]);
    }
    uint64_t mine = 1;
    for (;;) {
        mine ^= mine << 13, mine ^= mine >> 7, mine ^= mine << 17;
        int part = (int)(mine % 8);
        size_t at = (mine >> 8) % (lens[part] / 8) * 8;
        // The running code is not to change.
        if (part == 4 && at >= sizeof(Blob) + 16) {
            continue;
        }
        uint64_t value = mine >> (mine % 64);
        if (mine & 0x100000) {
            memcpy(parts[part] + at, &value, 8);
        } else {
            memcpy(parts[part], saved[part], lens[part]);
        }
    }
    return unused;
}

static void make_tables(void) {
    static char name[201];
    memset(name, 'x', 200);
    Struct *lines = room(20001 * sizeof *lines, PROT_READ | PROT_WRITE);
    for (int line = 0; line < 19999; line++) {
        lines[line] = (Struct){name, name, "", 0, 0, NULL};
    }
    gHotSpotVMStructs = lines;
}

int main(int argc, char **argv) {
    // The words that it was started by may be gone later.
    char word[16] = "";
    strncpy(word, argc > 1 ? argv[1] : "", sizeof word - 1);
    const char *mode = word;
    uint64_t end = ns_argument(argc, argv, 2, 1);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    char *code = NULL;
    int is = 0;
#define IS(name) (is = strcmp(mode, name) == 0)
    make_methods();
    size_t code_len = 1 << 20;
    if (IS("adapter")) {
        char *memory = make_heap(16 << 20);
        Blob *blob = make_blob(memory, 8 << 20, "I2C/C2I adapters");
        code = blob->code_begin;
        memset(code, 0x90, (size_t)(blob->code_end - code));
        const unsigned char asks[] = {0x4c, 0x8b, 0xec, 0x48, 0x8b, 0x04, 0x24};
        memcpy(blob->code_end - sizeof asks, asks, sizeof asks);
    } else if (IS("blobs")) {
        char *memory = make_heap((size_t)2000 * (512 << 10));
        for (int number = 0; number < 2000; number++) {
            code = make_compiled(memory + (size_t)number * (512 << 10), 512 << 10, 64 << 10, 1);
            memcpy(code, loop_code, sizeof loop_code);
        }
    } else {
        unsigned inlined = strcmp(mode, "names") == 0 ? 120 : 1;
        char *memory = make_heap(16 << 20);
        code = make_compiled(memory, 4 << 20, code_len, inlined);
    }
    memcpy(code, loop_code, sizeof loop_code);
    if (IS("tables")) {
        make_tables();
    } else if (IS("endless")) {
        heap.memory.high = heap.memory.low + ((uint64_t)1 << 45);
        high_bound = heap.memory.high;
        heap.map = (Space){room((uint64_t)1 << 40, PROT_READ), NULL};
        heap.map.high = heap.map.low + ((uint64_t)1 << 40);
        heap.log_segment = 3;
    } else if (IS("stuck")) {
        int file = argc > 4 && strlen(argv[4]) > 16384 ? open(argv[3], O_RDONLY) : -1;
        gHotSpotVMStructs = mmap(NULL, 65536, PROT_READ, MAP_PRIVATE, file, 0);
        if (gHotSpotVMStructs == MAP_FAILED) {
            return 3;
        }
        // Not its stack, which ends where they begin.
        char *words = (char *)(((uintptr_t)argv[argc - 1] + 8192) & ~(uintptr_t)4095);
        mmap(words, 4096, PROT_READ, MAP_PRIVATE | MAP_FIXED, file, 0);
        // Its end would wait for what closing it asks.
        close(file);
    }
    printf("ready\n");
    fflush(stdout);
    if (IS("stuck")) {
        getchar();
    }
    if (IS("changing")) {
        pthread_t thread;
        pthread_create(&thread, NULL, change, NULL);
    }
    if (IS("tables")) {
        for (int child = 0; child < CHILDREN; child++) {
            if (fork() == 0) {
                prctl(PR_SET_PDEATHSIG, SIGKILL);
                break;
            }
        }
    }
    uint64_t *stack = room(1 << 20, PROT_READ | PROT_WRITE);
    uint64_t *top = stack + 65536;
    while (cpu_ns() < end) {
        for (int frame = 0; frame < DEPTH; frame++) {
            top[2 * frame] = 0;
            top[2 * frame + 1] = (uint64_t)code + 16 + next() % (code_len - 32);
        }
        char *at = code;
        if (strcmp(mode, "blobs") == 0) {
            for (int frame = 0; frame < DEPTH; frame++) {
                uint64_t blob = next() % 2000;
                top[2 * frame + 1] = (uint64_t)heap.memory.low + (blob << 19) + 4096 + next() % 60000;
            }
        }
        // Others are to have the CPU, too.
        run(at, 300000, top);
        usleep(1500);
    }
    return 0;
}
