/*
 * Which cache lines of the kernel two calls share: a plugin for QEMU's emulator of CPUs.
 *
 *     cc -shared -fPIC -O2 -o share.so share.c
 *     qemu-system-x86_64 -plugin share.so,out=FILE ...
 *
 * Programs say where the calls begin and end, by instructions that do nothing on a machine without
 * it: `nop dword ptr [rax + MAGIC + mark]`. Of the accesses between, by the CPU that runs the call,
 * those to addresses of the kernel count, by the physical line. Two calls are done one after the
 * other, so there is no race, and what is counted is exact. A line is shared if both touch it, and
 * one of them writes it.
 *
 * A report is a line: the number that the program has given; how many lines are shared; and for each
 * its address, `w` or `r` for what the first and the second call did with it, `=` if they have bytes
 * in common and `/` if they only share the line, and an instruction of each that did so.
 *
 * The interface is QEMU's version 1, of QEMU 4.2 to 8.2, declared here: Debian has no header for it.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

typedef uint64_t plugin_id;
typedef uint32_t access_info;
struct qemu_plugin_tb;
struct qemu_plugin_insn;
struct qemu_plugin_hwaddr;
typedef struct {
    const char *target_name;
    struct {
        int min, cur;
    } version;
    bool system_emulation;
    union {
        struct {
            int smp_vcpus, max_vcpus;
        } system;
    };
} machine_info;
enum { NO_REGISTERS = 0 };
enum { READS_AND_WRITES = 3 };

void qemu_plugin_register_vcpu_tb_trans_cb(plugin_id, void (*)(plugin_id, struct qemu_plugin_tb *));
size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *);
struct qemu_plugin_insn *qemu_plugin_tb_get_insn(const struct qemu_plugin_tb *, size_t);
const void *qemu_plugin_insn_data(const struct qemu_plugin_insn *);
size_t qemu_plugin_insn_size(const struct qemu_plugin_insn *);
uint64_t qemu_plugin_insn_vaddr(const struct qemu_plugin_insn *);
void qemu_plugin_register_vcpu_insn_exec_cb(struct qemu_plugin_insn *, void (*)(unsigned, void *), int, void *);
void qemu_plugin_register_vcpu_mem_cb(struct qemu_plugin_insn *, void (*)(unsigned, access_info, uint64_t, void *),
                                      int, int, void *);
bool qemu_plugin_mem_is_store(access_info);
unsigned qemu_plugin_mem_size_shift(access_info);
struct qemu_plugin_hwaddr *qemu_plugin_get_hwaddr(access_info, uint64_t);
bool qemu_plugin_hwaddr_is_io(const struct qemu_plugin_hwaddr *);
uint64_t qemu_plugin_hwaddr_phys_addr(const struct qemu_plugin_hwaddr *);

#define EXPORT __attribute__((visibility("default")))
EXPORT int qemu_plugin_version = 1;

/* Marks are above this, in the 32 bits of the instruction's displacement. */
#define MAGIC 0x4b52d000u
enum { FIRST = 1, SECOND, END, REPORT, DIGIT = 16 /* to 31: four bits of the number */ };

#define LINE 64
#define CPUS 64
#define MOST 16384 /* lines of a call; a power of two */

struct line {
    uint64_t place;              /* physical, of the line, plus 1; 0 if there is none */
    uint64_t address;            /* as the kernel sees it */
    uint64_t bytes[2];           /* a bit for each byte that is read, and written */
    uint64_t by[2];              /* the first instruction that reads, and writes */
};
struct call {
    struct line lines[MOST];
    unsigned used[MOST], count;  /* places in `lines` */
    bool has_begun, is_too_large;
};

static struct call calls[2];
static struct call *window[CPUS]; /* what each CPU is doing now */
static uint32_t number;
static FILE *out;

static struct line *find(struct call *call, uint64_t place, bool add)
{
    unsigned at = (place * 0x9e3779b97f4a7c15u) >> 50;
    while (call->lines[at].place && call->lines[at].place != place + 1)
        at = (at + 1) % MOST;
    if (!call->lines[at].place) {
        if (!add)
            return NULL;
        if (call->count == MOST - 1) {
            call->is_too_large = true;
            return NULL;
        }
        call->used[call->count++] = at;
        call->lines[at].place = place + 1;
    }
    return &call->lines[at];
}

static void touch(struct call *call, uint64_t physical, uint64_t address, unsigned bytes, bool writes, uint64_t by)
{
    while (bytes) {
        unsigned start = physical % LINE, here = bytes < LINE - start ? bytes : LINE - start;
        struct line *line = find(call, physical / LINE, true);
        if (!line)
            return;
        line->address = address & ~(uint64_t)(LINE - 1);
        if (!line->bytes[writes])
            line->by[writes] = by;
        line->bytes[writes] |= (here == LINE ? ~0ull : (1ull << here) - 1) << start;
        physical += here, address += here, bytes -= here;
    }
}

static void on_access(unsigned cpu, access_info info, uint64_t address, void *by)
{
    if (cpu >= CPUS || !window[cpu] || !(address >> 63))
        return;
    struct qemu_plugin_hwaddr *place = qemu_plugin_get_hwaddr(info, address);
    if (!place || qemu_plugin_hwaddr_is_io(place))
        return;
    touch(window[cpu], qemu_plugin_hwaddr_phys_addr(place), address, 1u << qemu_plugin_mem_size_shift(info),
          qemu_plugin_mem_is_store(info), (uint64_t)(uintptr_t)by);
}

/* The line of the second call, if it is shared with this one of the first. */
static const struct line *is_shared(const struct line *one)
{
    const struct line *two = find(&calls[1], one->place - 1, false);
    return two && (one->bytes[1] || two->bytes[1]) ? two : NULL;
}

static void report(void)
{
    unsigned shared = 0;
    for (unsigned at = 0; at < calls[0].count; at++)
        shared += is_shared(&calls[0].lines[calls[0].used[at]]) != NULL;
    fprintf(out, "%u ", number);
    if (calls[0].has_begun && calls[1].has_begun && !calls[0].is_too_large && !calls[1].is_too_large)
        fprintf(out, "%u", shared);
    else
        fprintf(out, "invalid");
    for (unsigned at = 0; at < calls[0].count; at++) {
        const struct line *one = &calls[0].lines[calls[0].used[at]], *two = is_shared(one);
        if (!two)
            continue;
        bool overlaps = (one->bytes[1] & (two->bytes[0] | two->bytes[1])) | (one->bytes[0] & two->bytes[1]);
        bool first = one->bytes[1], second = two->bytes[1];
        fprintf(out, " %llx:%c%c%c:%llx:%llx", (unsigned long long)one->address, "rw"[first], "/="[overlaps],
                "rw"[second], (unsigned long long)one->by[first], (unsigned long long)two->by[second]);
    }
    fprintf(out, "\n");
    fflush(out);
}

static void clear(struct call *call)
{
    for (unsigned at = 0; at < call->count; at++)
        memset(&call->lines[call->used[at]], 0, sizeof *call->lines);
    call->count = 0;
    call->has_begun = call->is_too_large = false;
}

static void on_mark(unsigned cpu, void *data)
{
    unsigned mark = (uintptr_t)data;
    if (cpu >= CPUS)
        return;
    if (mark >= DIGIT) {
        number = number << 4 | (mark - DIGIT);
    } else if (mark == FIRST || mark == SECOND) {
        struct call *call = &calls[mark - FIRST];
        clear(call);
        call->has_begun = true;
        window[cpu] = call;
    } else if (mark == END) {
        window[cpu] = NULL;
    } else if (mark == REPORT) {
        report();
        clear(&calls[0]);
        clear(&calls[1]);
    }
}

static void translate(plugin_id id, struct qemu_plugin_tb *block)
{
    (void)id;
    for (size_t at = 0; at < qemu_plugin_tb_n_insns(block); at++) {
        struct qemu_plugin_insn *insn = qemu_plugin_tb_get_insn(block, at);
        const uint8_t *code = qemu_plugin_insn_data(insn);
        uint64_t address = qemu_plugin_insn_vaddr(insn);
        if (qemu_plugin_insn_size(insn) == 7 && !memcmp(code, "\x0f\x1f\x80", 3)) {
            uint32_t mark;
            memcpy(&mark, code + 3, 4);
            if (mark > MAGIC && mark < MAGIC + 2 * DIGIT)
                qemu_plugin_register_vcpu_insn_exec_cb(insn, on_mark, NO_REGISTERS, (void *)(uintptr_t)(mark - MAGIC));
        } else if (address >> 63) {
            qemu_plugin_register_vcpu_mem_cb(insn, on_access, NO_REGISTERS, READS_AND_WRITES,
                                             (void *)(uintptr_t)address);
        }
    }
}

EXPORT int qemu_plugin_install(plugin_id id, const machine_info *info, int argc, char **argv)
{
    const char *name = NULL;
    for (int at = 0; at < argc; at++)
        if (!strncmp(argv[at], "out=", 4))
            name = argv[at] + 4;
    if (!info->system_emulation || strcmp(info->target_name, "x86_64") || !name) {
        fprintf(stderr, "share: for qemu-system-x86_64, with out=FILE\n");
        return -1;
    }
    out = fopen(name, "w");
    if (!out) {
        perror(name);
        return -1;
    }
    qemu_plugin_register_vcpu_tb_trans_cb(id, translate);
    return 0;
}
