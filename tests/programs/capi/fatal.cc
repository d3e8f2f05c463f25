// Mistakes that end the process, by the number of the argument; a compiler of C++ reads all
// headers.
#include <manycore/ldu.h>
#include <manycore/lock.h>
#include <manycore/rcu.h>
#include <manycore/rlu.h>

#include <cstdlib>
#include <cstring>

static void throws(void *, int, manycore_ldu_node_t *)
{
    throw 1;
}

static void released(void *, manycore_ldu_node_t *) {}

int main(int argc, char **argv)
{
    const char *mistake = argc > 1 ? argv[1] : "";
    RLU_INIT();
    rlu_thread_data_t *self = RLU_THREAD_ALLOC();
    RLU_THREAD_INIT(self);
    rlu_thread_data_t unknown;
    std::memset(&unknown, 0, sizeof unknown);
    int *object = nullptr;

    if (!std::strcmp(mistake, "null")) {
        RLU_READER_LOCK(nullptr);
    } else if (!std::strcmp(mistake, "unknown")) {
        RLU_READER_LOCK(&unknown);
    } else if (!std::strcmp(mistake, "unlock")) {
        RLU_READER_UNLOCK(self);
    } else if (!std::strcmp(mistake, "outside")) {
        object = static_cast<int *>(RLU_ALLOC(sizeof *object));
        RLU_TRY_LOCK(self, &object);
    } else if (!std::strcmp(mistake, "nothing")) {
        RLU_READER_LOCK(self);
        RLU_TRY_LOCK(self, &object);
    } else if (!std::strcmp(mistake, "section")) {
        manycore_rcu_t *rcu;
        manycore_rcu_thread_t *thread;
        manycore_rcu_create(nullptr, &rcu);
        manycore_rcu_register(rcu, &thread);
        manycore_rcu_read_unlock(thread);
    } else if (!std::strcmp(mistake, "exception")) {
        manycore_ldu_node_t node = MANYCORE_LDU_NODE_INIT;
        const manycore_ldu_target_t target = {throws, released};
        manycore_ldu_t *log;
        manycore_ldu_create(MANYCORE_LDU_GLOBAL, &log);
        manycore_ldu_insert(log, &node);
        try {
            manycore_ldu_drain(log, &target, nullptr, nullptr);
        } catch (...) {
            return 3; // it has passed
        }
    }
    return 0;
}
