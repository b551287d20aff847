// setcap FILE MASK: gives a file those capabilities, in effect. MASK is hexadecimal.
#include <linux/capability.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/xattr.h>

int main(int argc, char **argv) {
    if (argc != 3) {
        return 2;
    }
    unsigned long long mask = strtoull(argv[2], NULL, 16);
    struct vfs_cap_data data = {.magic_etc = VFS_CAP_REVISION_2 | VFS_CAP_FLAGS_EFFECTIVE};
    data.data[0].permitted = (unsigned)mask;
    data.data[1].permitted = (unsigned)(mask >> 32);
    if (setxattr(argv[1], "security.capability", &data, sizeof data, 0)) {
        perror(argv[1]);
        return 1;
    }
    return 0;
}
