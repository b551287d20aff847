// requests ROUNDS: a small server without a network, in two versions (-DVERSION=1, -DVERSION=2).
//
// The second one verifies a signature for each request where the first looked into a cache of
// sessions, sorts rows by a better algorithm, and escapes text twice by mistake.
#include <stdint.h>
#include <stdlib.h>

#define FUNCTION __attribute__((noinline))

static uint64_t state = 88172645463325252u;

// So many steps of xorshift: some CPU time that no compiler can take away.
#define WORK(steps)                                                                                \
    for (int step = 0; step < (steps); step++) {                                                   \
        state ^= state << 13;                                                                      \
        state ^= state >> 7;                                                                       \
        state ^= state << 17;                                                                      \
    }                                                                                              \
    __asm__ volatile("" : "+r"(state))

FUNCTION static void trim(void) { WORK(120); }
FUNCTION static void parse_header(void) { WORK(260); trim(); WORK(1); }
FUNCTION static void parse_request(void) {
    WORK(180);
    for (int header = 0; header < 3; header++) parse_header();
    WORK(1);
}

#if VERSION == 1
FUNCTION static void hash_token(void) { WORK(520); }
FUNCTION static void lookup_session(void) { WORK(340); hash_token(); WORK(1); }
FUNCTION static void authorize(void) { WORK(60); lookup_session(); WORK(1); }
FUNCTION static void merge_rows(void) { WORK(1500); }
FUNCTION static void sort_rows(void) { WORK(500); merge_rows(); WORK(1); }
#else
FUNCTION static void sha256_block(void) { WORK(900); }
FUNCTION static void verify_signature(void) {
    WORK(150);
    for (int block = 0; block < 2; block++) sha256_block();
    WORK(1);
}
FUNCTION static void authorize(void) { WORK(60); verify_signature(); WORK(1); }
FUNCTION static void sort_rows(void) { WORK(900); }
#endif

FUNCTION static void compare_rows(void) { WORK(700); }
FUNCTION static void scan_rows(void) {
    WORK(900);
    for (int row = 0; row < 2; row++) compare_rows();
    WORK(1);
}
FUNCTION static void plan_query(void) { WORK(420); }
FUNCTION static void run_query(void) { plan_query(); scan_rows(); sort_rows(); WORK(80); }

FUNCTION static void escape_html(void) { WORK(640 * VERSION); }
FUNCTION static void render_row(void) { WORK(220); escape_html(); WORK(1); }
FUNCTION static void render_page(void) {
    WORK(300);
    for (int row = 0; row < 3; row++) render_row();
    WORK(1);
}

FUNCTION static void match_longest(void) { WORK(1250); }
FUNCTION static void emit_codes(void) { WORK(480); }
FUNCTION static void compress_page(void) { WORK(150); match_longest(); emit_codes(); WORK(1); }

FUNCTION static void write_log(void) { WORK(330); }
FUNCTION static void handle_request(void) {
    parse_request();
    authorize();
    run_query();
    render_page();
    compress_page();
    write_log();
    WORK(20);
}

int main(int argc, char **argv) {
    long rounds = argc > 1 ? atol(argv[1]) : 1;
    for (long round = 0; round < rounds; round++) handle_request();
    return state == 0;
}
