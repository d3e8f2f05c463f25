/* A cursor of MvrluDB: a part of mvrlu_db.h. */
#ifndef MANYCORE_MVRLU_CURSOR_H
#define MANYCORE_MVRLU_CURSOR_H

#include <kccommon.h>

#include "mvrlu_visit.h"

#include <atomic>
#include <mutex>

namespace manycore {

/* Indicates a record. It goes by the record's key, so that it stays where it is when that record is
   removed by another. */
template <class DB> class MvrluCursor : public kyotocabinet::BasicDB::Cursor {
    friend class MvrluDB;
    typedef kyotocabinet::BasicDB::Error Error;
    typedef kyotocabinet::DB::Visitor Visitor;

public:
    explicit MvrluCursor(DB *db) : db_(db)
    {
        std::lock_guard<std::mutex> lock(db->cursors_lock_);
        db->cursors_.push_back(this);
    }

    ~MvrluCursor() override
    {
        if (!db_)
            return;
        std::lock_guard<std::mutex> lock(db_->cursors_lock_);
        db_->cursors_.remove(this);
    }

    bool accept(Visitor *visitor, bool writable = true, bool step = false) override
    {
        if (!db_->may(writable))
            return false;
        for (;;) {
            if (!is_valid())
                return no_record();
            if (!go(MANYCORE_MAP_AT))
                return false;
            MvrluVisit visit;
            visit.visitor = visitor;
            visit.key = key_.data();
            visit.key_size = key_.size();
            visit.is_writable = writable;
            visit.is_for_full = true;
            manycore_status_t status = writable ? manycore_map_change(db_->map_, key_.data(), key_.size(), MvrluVisit::decide, &visit)
                                                : manycore_map_get(db_->map_, key_.data(), key_.size(), MvrluVisit::look, &visit);
            visit.rethrow();
            if (status == MANYCORE_NOT_FOUND || (status == MANYCORE_OK && !visit.was_full))
                continue; /* removed meanwhile: on to the next */
            if (!db_->done(status))
                return false;
            if (visit.is_denied)
                return db_->deny();
            if (visit.has_removed || step)
                pass(MANYCORE_MAP_AFTER);
            return true;
        }
    }

    bool jump() override
    {
        return db_->may(false) && renew() && go(MANYCORE_MAP_FIRST);
    }

    bool jump(const char *kbuf, size_t ksiz) override
    {
        if (!db_->may(false))
            return false;
        renew();
        if (manycore_map_get(db_->map_, kbuf, ksiz, nullptr, nullptr) != MANYCORE_OK) {
            is_set_ = false;
            return no_record();
        }
        key_.assign(kbuf, ksiz);
        return true;
    }

    bool jump(const std::string &key) override
    {
        return jump(key.data(), key.size());
    }

    bool jump_back() override
    {
        return not_backwards();
    }

    bool jump_back(const char *, size_t) override
    {
        return not_backwards();
    }

    bool jump_back(const std::string &) override
    {
        return not_backwards();
    }

    bool step() override
    {
        if (!db_->may(false))
            return false;
        return is_valid() ? go(MANYCORE_MAP_AFTER) : no_record();
    }

    bool step_back() override
    {
        return not_backwards();
    }

    kyotocabinet::BasicDB *db() override
    {
        return db_;
    }

private:
    MvrluCursor(const MvrluCursor &) = delete;
    MvrluCursor &operator=(const MvrluCursor &) = delete;

    bool is_valid() const
    {
        return is_set_ && generation_ == db_->generation_.load(std::memory_order_relaxed);
    }

    bool renew()
    {
        is_set_ = true;
        generation_ = db_->generation_.load(std::memory_order_relaxed);
        return true;
    }

    bool no_record()
    {
        db_->set_error(_KCCODELINE_, Error::NOREC, "no record");
        return false;
    }

    bool not_backwards()
    {
        if (db_->may(false))
            db_->set_error(_KCCODELINE_, Error::NOIMPL, "not implemented");
        return false;
    }

    /* Goes to a record from the key on; an error if there is none. */
    bool go(int from)
    {
        pass(from);
        return is_set_ || no_record();
    }

    void pass(int from)
    {
        std::string found;
        is_set_ = manycore_map_next(db_->map_, from, key_.data(), key_.size(), MvrluVisit::take_key, &found) == MANYCORE_OK;
        key_.swap(found);
    }

    DB *db_;
    std::string key_;
    bool is_set_ = false;
    uint64_t generation_ = 0;
};

} // namespace manycore

#endif
