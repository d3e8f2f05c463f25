/* What MvrluDB has the map's functions call: a part of mvrlu_db.h. */
#ifndef MANYCORE_MVRLU_VISIT_H
#define MANYCORE_MVRLU_VISIT_H

#include <manycore/map.h>

#include <kcdb.h>

#include <cstring>
#include <exception>
#include <string>

namespace manycore {

/* What a callback has to do, and what became of it. An exception is carried past the library, which
   is not C++. */
struct MvrluVisit {
    typedef kyotocabinet::DB::Visitor Visitor;
    typedef kyotocabinet::BasicDB::ProgressChecker ProgressChecker;

    Visitor *visitor = nullptr;
    const std::string *keys = nullptr; /* of a bulk */
    const char *key = nullptr;         /* otherwise */
    size_t key_size = 0;
    bool is_writable = false;
    bool is_for_full = false; /* leave out what is not there */
    bool was_full = false, has_removed = false, is_denied = false, is_stopped = false;
    ProgressChecker *checker = nullptr;
    const char *name = "";
    int64_t count = 0, all = 0;
    std::exception_ptr thrown;

    /* Whether the answer of a visitor is a new value. */
    static bool is_value(const char *answer)
    {
        return answer != Visitor::NOP && answer != Visitor::REMOVE;
    }

    void rethrow()
    {
        if (thrown)
            std::rethrow_exception(thrown);
    }

    /* For what may be changed: the visitor's answer. */
    static int decide(void *context, size_t index, const void *value, size_t size, manycore_map_bytes_t *new_value)
    {
        MvrluVisit &visit = *static_cast<MvrluVisit *>(context);
        if (!value && visit.is_for_full)
            return MANYCORE_MAP_KEEP;
        const char *key = visit.keys ? visit.keys[index].data() : visit.key;
        size_t key_size = visit.keys ? visit.keys[index].size() : visit.key_size;
        size_t new_size = 0;
        const char *answer = Visitor::NOP;
        try {
            answer = value ? visit.visitor->visit_full(key, key_size, static_cast<const char *>(value), size, &new_size)
                           : visit.visitor->visit_empty(key, key_size, &new_size);
        } catch (...) {
            visit.thrown = std::current_exception();
            return -1; /* none of the decisions: nothing of the call has happened */
        }
        visit.was_full = value != nullptr;
        if (answer == Visitor::NOP)
            return MANYCORE_MAP_KEEP;
        if (answer == Visitor::REMOVE) {
            if (!visit.is_writable)
                return MANYCORE_MAP_KEEP;
            visit.has_removed = true;
            return MANYCORE_MAP_REMOVE;
        }
        if (!visit.is_writable) {
            visit.is_denied = true;
            return MANYCORE_MAP_KEEP;
        }
        new_value->data = answer;
        new_value->size = new_size;
        return MANYCORE_MAP_PUT;
    }

    /* For what is only read. */
    static int look(void *context, const void *key, size_t key_size, const void *value, size_t size)
    {
        MvrluVisit &visit = *static_cast<MvrluVisit *>(context);
        try {
            size_t new_size = 0;
            const char *answer = visit.visitor->visit_full(static_cast<const char *>(key), key_size,
                                                           static_cast<const char *>(value), size, &new_size);
            visit.was_full = true;
            visit.is_denied |= is_value(answer);
            visit.count++;
            if (visit.checker && !visit.checker->check(visit.name, "processing", visit.count, visit.all))
                visit.is_stopped = true;
        } catch (...) {
            visit.thrown = std::current_exception();
        }
        return !visit.is_denied && !visit.is_stopped && !visit.thrown;
    }

    /* The same, with answers that do not matter. */
    static int scan_one(void *context, const void *key, size_t key_size, const void *value, size_t size)
    {
        MvrluVisit &visit = *static_cast<MvrluVisit *>(context);
        try {
            size_t new_size = 0;
            visit.visitor->visit_full(static_cast<const char *>(key), key_size, static_cast<const char *>(value), size, &new_size);
            if (visit.checker && !visit.checker->check(visit.name, "processing", -1, visit.all))
                visit.is_stopped = true;
        } catch (...) {
            visit.thrown = std::current_exception();
        }
        return !visit.is_denied && !visit.is_stopped && !visit.thrown;
    }

    static int copy_value(void *context, const void *, size_t, const void *value, size_t size)
    {
        Copy &copy = *static_cast<Copy *>(context);
        copy.data = new char[size + 1];
        std::memcpy(copy.data, value, size);
        copy.data[size] = '\0';
        copy.size = size;
        return 0;
    }

    static int copy_string(void *context, const void *, size_t, const void *value, size_t size)
    {
        static_cast<std::string *>(context)->assign(static_cast<const char *>(value), size);
        return 0;
    }

    static int copy_part(void *context, const void *, size_t, const void *value, size_t size)
    {
        Copy &copy = *static_cast<Copy *>(context);
        std::memcpy(copy.data, value, size < copy.size ? size : copy.size);
        copy.size = size;
        return 0;
    }

    static int take_size(void *context, const void *, size_t, const void *, size_t size)
    {
        *static_cast<size_t *>(context) = size;
        return 0;
    }

    struct Copy {
        char *data;
        size_t size;
    };

    static int take_key(void *context, const void *key, size_t key_size, const void *, size_t)
    {
        static_cast<std::string *>(context)->assign(static_cast<const char *>(key), key_size);
        return 0;
    }
};

/* Tells a visitor when its visits begin and end. */
struct MvrluScopedVisitor {
    typedef kyotocabinet::BasicDB::Visitor Visitor;

    explicit MvrluScopedVisitor(Visitor *visitor) : visitor(visitor)
    {
        visitor->visit_before();
    }
    ~MvrluScopedVisitor()
    {
        visitor->visit_after();
    }
    Visitor *visitor;
};

/* Keeps other threads from changing anything, unless this one does so already. */
class MvrluAlone {
public:
    explicit MvrluAlone(manycore_map_t *map) : map_(map), is_first_(manycore_map_keep_others_out(map) == MANYCORE_OK)
    {
    }
    ~MvrluAlone()
    {
        if (is_first_)
            manycore_map_let_others_in(map_);
    }
    bool is_first() const
    {
        return is_first_;
    }

private:
    manycore_map_t *map_;
    bool is_first_;
};

} // namespace manycore

#endif
