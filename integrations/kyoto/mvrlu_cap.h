/*
 * A part of mvrlu_db.h: keeps a database within a number of records, or of bytes.
 *
 * Records go in the map's order, round and round: reads write nothing, so nothing says which record
 * was used lately. The record that was just written stays.
 */
#ifndef MANYCORE_MVRLU_CAP_H
#define MANYCORE_MVRLU_CAP_H

#include "mvrlu_visit.h"

#include <cstdint>
#include <cstring>
#include <mutex>
#include <string>

namespace manycore {

class MvrluCap {
public:
    /* Negative: no cap. */
    void set_count(int64_t records)
    {
        count_ = records;
    }

    void set_size(int64_t bytes)
    {
        size_ = bytes;
    }

    /*
     * Takes records out until the map is within its caps. To be called after a record was written,
     * whose key is given. Where several threads write, one of them does it for all: so there may be
     * a record more for each of the others.
     */
    void keep(manycore_map_t *map, const char *key, size_t size)
    {
        if (count_ < 0 && size_ < 0)
            return;
        std::unique_lock<std::mutex> lock(mutex_, std::try_to_lock);
        for (int n = 0; lock.owns_lock() && n < STEPS && is_over(map); n++) {
            std::string next;
            manycore_status_t status = manycore_map_next(map, from_, hand_.data(), hand_.size(), MvrluVisit::take_key, &next);
            if (status == MANYCORE_NOT_FOUND && from_ == MANYCORE_MAP_FIRST)
                return;
            from_ = status == MANYCORE_OK ? MANYCORE_MAP_AFTER : MANYCORE_MAP_FIRST;
            if (status == MANYCORE_OK && (next.size() != size || std::memcmp(next.data(), key, size) != 0))
                manycore_map_remove(map, next.data(), next.size());
            hand_.swap(next);
        }
    }

    /* From the beginning again, in a map that is another. */
    void restart()
    {
        from_ = MANYCORE_MAP_FIRST;
        hand_.clear();
    }

private:
    /* Of one call: a large value may take the place of many small ones. */
    static const int STEPS = 1024;

    bool is_over(manycore_map_t *map) const
    {
        return (count_ >= 0 && manycore_map_count(map) > uint64_t(count_)) ||
            (size_ >= 0 && manycore_map_bytes(map) > uint64_t(size_));
    }

    int64_t count_ = -1, size_ = -1;
    std::mutex mutex_; /* of what follows */
    std::string hand_;
    int from_ = MANYCORE_MAP_FIRST;
};

} // namespace manycore

#endif
