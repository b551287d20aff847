// stuck_fs FILE DIRECTORY NAME: mounts a file system on DIRECTORY that has one file of that name, with the
// bytes of FILE, and says `ready`. After a line from its input it takes all requests and answers none,
// and says `stuck`. It speaks to the kernel itself (linux/fuse.h), so it needs no library. It asks for
// nothing to be kept in memory but what is mapped, and for reads one at a time.
#include <errno.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#define BUFFER (1 << 20)

static int device;
static int file;
static struct stat status;
static const char *name;

static void answer(const struct fuse_in_header *in, int error, const void *data, size_t len) {
    static char bytes[BUFFER];
    struct fuse_out_header *out = (struct fuse_out_header *)bytes;
    out->len = (uint32_t)(sizeof *out + len);
    out->error = error;
    out->unique = in->unique;
    if (len > 0) {
        memcpy(bytes + sizeof *out, data, len);
    }
    if (write(device, bytes, out->len) < 0 && errno != ENOENT) {
        perror("stuck_fs: write");
    }
}

static struct fuse_attr attributes(uint64_t node) {
    struct fuse_attr attr = {.ino = node, .nlink = 1, .blksize = 4096};
    if (node == FUSE_ROOT_ID) {
        attr.mode = S_IFDIR | 0755;
    } else {
        attr.mode = S_IFREG | 0755;
        attr.size = (uint64_t)status.st_size;
    }
    return attr;
}

static void serve(struct fuse_in_header *in) {
    const void *body = in + 1;
    switch (in->opcode) {
    case FUSE_INIT: {
        struct fuse_init_out out = {.major = 7, .minor = 31, .max_readahead = 0, .max_write = 65536};
        answer(in, 0, &out, sizeof out);
        return;
    }
    case FUSE_LOOKUP: {
        if (strcmp(body, name) != 0) {
            answer(in, -ENOENT, NULL, 0);
            return;
        }
        struct fuse_entry_out out = {.nodeid = 2, .attr = attributes(2)};
        answer(in, 0, &out, sizeof out);
        return;
    }
    case FUSE_GETATTR: {
        struct fuse_attr_out out = {.attr = attributes(in->nodeid)};
        answer(in, 0, &out, sizeof out);
        return;
    }
    case FUSE_OPEN: {
        struct fuse_open_out out = {.open_flags = FOPEN_KEEP_CACHE};
        answer(in, 0, &out, sizeof out);
        return;
    }
    case FUSE_READ: {
        static char data[BUFFER / 2];
        const struct fuse_read_in *read = body;
        ssize_t len = pread(file, data, read->size, (off_t)read->offset);
        answer(in, len < 0 ? -EIO : 0, data, len < 0 ? 0 : (size_t)len);
        return;
    }
    case FUSE_STATFS: {
        struct fuse_statfs_out out = {.st = {.bsize = 4096, .namelen = 255, .frsize = 4096}};
        answer(in, 0, &out, sizeof out);
        return;
    }
    case FUSE_FLUSH:
    case FUSE_RELEASE:
        answer(in, 0, NULL, 0);
        return;
    case FUSE_FORGET:
    case FUSE_BATCH_FORGET:
    case FUSE_INTERRUPT:
        return;
    default:
        answer(in, -ENOSYS, NULL, 0);
    }
}

int main(int argc, char **argv) {
    file = argc > 3 ? open(argv[1], O_RDONLY) : -1;
    device = open("/dev/fuse", O_RDWR);
    if (file < 0 || device < 0 || fstat(file, &status) != 0) {
        perror("stuck_fs");
        return 3;
    }
    name = argv[3];
    char options[128];
    snprintf(options, sizeof options, "fd=%d,rootmode=40000,user_id=%d,group_id=%d,allow_other",
             device, (int)getuid(), (int)getgid());
    if (mount("stuck_fs", argv[2], "fuse.stuck_fs", MS_NOSUID | MS_NODEV, options) != 0) {
        perror("stuck_fs: mount");
        return 3;
    }
    printf("ready\n");
    fflush(stdout);
    static char request[BUFFER];
    int stuck = 0;
    struct pollfd files[] = {{device, POLLIN, 0}, {STDIN_FILENO, POLLIN, 0}};
    for (;;) {
        if (poll(files, stuck ? 1 : 2, -1) < 0) {
            return 3;
        }
        if (files[1].revents != 0 && !stuck) {
            stuck = 1;
            printf("stuck\n");
            fflush(stdout);
        }
        if (files[0].revents != 0) {
            ssize_t len = read(device, request, sizeof request);
            if (len < 0 && errno == ENODEV) {
                return 0;
            }
            if (len >= (ssize_t)sizeof(struct fuse_in_header) && !stuck) {
                serve((struct fuse_in_header *)request);
            }
        }
    }
}
