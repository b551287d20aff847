// dlopen PLUGIN [CPU_SECONDS]: half of the time in `before_load`, then loads PLUGIN and spends the
// other half in its `plugin_work`, called from `run_plugin`; last the plugin is unloaded again.
#include "cpu.h"
#include <dlfcn.h>
#include <stdio.h>

FUNCTION static void before_load(uint64_t end) { BURN_UNTIL(end); }

FUNCTION static void run_plugin(void (*work)(uint64_t), uint64_t end) {
    work(end);
    NO_TAIL_CALL();
}

int main(int argc, char **argv) {
    uint64_t half = ns_argument(argc, argv, 2, 1.0) / 2;
    if (argc < 2) {
        return 2;
    }
    before_load(cpu_ns() + half);
    void *plugin = dlopen(argv[1], RTLD_NOW);
    if (plugin == NULL) {
        fprintf(stderr, "%s\n", dlerror());
        return 1;
    }
    void (*work)(uint64_t) = (void (*)(uint64_t))dlsym(plugin, "plugin_work");
    run_plugin(work, cpu_ns() + half);
    dlclose(plugin);
    return 0;
}
