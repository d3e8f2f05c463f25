/*
 * A database class of Kyoto Cabinet over manycore's map of byte strings: `manycore::MvrluDB`, in
 * memory, for programs in which many threads read. Include Kyoto Cabinet's headers as usual, and
 * this one; link with -lkyotocabinet -lmanycore.
 *
 *     manycore::MvrluDB db;
 *     db.open("*", kyotocabinet::BasicDB::OWRITER | kyotocabinet::BasicDB::OCREATE);
 *     db.set("apples", "3");
 *
 * Needs C++11. This file is licensed as the rest of manycore; Kyoto Cabinet is under the GPL,
 * version 3, and so is a program that has both. What differs from Kyoto Cabinet's own classes is in
 * integrations/kyoto/README.md.
 */
#ifndef MANYCORE_MVRLU_DB_H
#define MANYCORE_MVRLU_DB_H

#include <kccommon.h>
#include <kcdb.h>
#include <kcthread.h>
#include <kcutil.h>

#include "mvrlu_cap.h"
#include "mvrlu_cursor.h"

#include <atomic>
#include <cstring>
#include <list>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace manycore {

namespace kc = kyotocabinet;

class MvrluDB : public kc::BasicDB {
public:
    typedef MvrluCursor<MvrluDB> Cursor;

    MvrluDB() : error_()
    {
        std::memset(opaque_, 0, sizeof(opaque_));
    }

    ~MvrluDB() override
    {
        if (omode_ != 0)
            close();
        for (Cursor *cursor : cursors_)
            cursor->db_ = nullptr;
    }

    using kc::BasicDB::check;
    using kc::BasicDB::get;
    using kc::BasicDB::remove;
    using kc::BasicDB::set;

    bool accept(const char *kbuf, size_t ksiz, Visitor *visitor, bool writable = true) override
    {
        if (!may(writable))
            return false;
        Visit visit;
        visit.visitor = visitor;
        visit.key = kbuf;
        visit.key_size = ksiz;
        visit.is_writable = writable;
        manycore_status_t status;
        if (writable) {
            status = manycore_map_change(map_, kbuf, ksiz, Visit::decide, &visit);
        } else {
            status = manycore_map_get(map_, kbuf, ksiz, Visit::look, &visit);
            if (status == MANYCORE_NOT_FOUND) {
                size_t size;
                visit.is_denied = Visit::is_value(visitor->visit_empty(kbuf, ksiz, &size));
                status = MANYCORE_OK;
            }
        }
        visit.rethrow();
        if (writable)
            cap_.keep(map_, kbuf, ksiz);
        return done(status) && (!visit.is_denied || deny());
    }

    bool accept_bulk(const std::vector<std::string> &keys, Visitor *visitor, bool writable = true) override
    {
        if (!may(writable))
            return false;
        ScopedVisitor scoped(visitor);
        if (keys.empty())
            return true;
        std::vector<manycore_map_bytes_t> all;
        all.reserve(keys.size());
        for (const std::string &key : keys)
            all.push_back({key.data(), key.size()});
        Visit visit;
        visit.visitor = visitor;
        visit.keys = keys.data();
        visit.is_writable = writable;
        manycore_status_t status = manycore_map_change_all(map_, all.data(), all.size(), Visit::decide, &visit);
        visit.rethrow();
        if (writable)
            cap_.keep(map_, keys.back().data(), keys.back().size());
        return done(status) && (!visit.is_denied || deny());
    }

    bool iterate(Visitor *visitor, bool writable = true, ProgressChecker *checker = nullptr) override
    {
        if (!may(writable))
            return false;
        ScopedVisitor scoped(visitor);
        Visit visit;
        visit.visitor = visitor;
        visit.is_writable = writable;
        visit.is_for_full = true;
        visit.checker = checker;
        visit.name = "iterate";
        visit.all = count();
        if (!check_progress(checker, "iterate", "beginning", 0, visit.all))
            return false;
        bool is_done = writable ? iterate_alone(visit) : done(manycore_map_for_each(map_, Visit::look, &visit));
        visit.rethrow();
        if (!is_done)
            return false;
        if (visit.is_denied)
            return deny();
        if (visit.is_stopped)
            return checker_failed();
        if (!check_progress(checker, "iterate", "ending", -1, visit.all))
            return false;
        trigger(MetaTrigger::ITERATE, "iterate");
        return true;
    }

    bool scan_parallel(Visitor *visitor, size_t thnum, ProgressChecker *checker = nullptr) override
    {
        if (!may(false))
            return false;
        size_t parts = thnum < 1 ? 1 : thnum > size_t(kc::INT8MAX) ? size_t(kc::INT8MAX) : thnum;
        ScopedVisitor scoped(visitor);
        int64_t all = count();
        if (!check_progress(checker, "scan_parallel", "beginning", -1, all))
            return false;
        /* No other thread changes anything: so all parts are of one moment. Others would not see what
         * this thread has changed in its transaction. */
        Alone alone(map_);
        if (!alone.is_first())
            parts = 1;
        std::vector<Visit> visits(parts);
        std::vector<manycore_status_t> statuses(parts, MANYCORE_OK);
        std::vector<std::thread> threads;
        auto scan = [&](size_t part) {
            Visit &visit = visits[part];
            visit.visitor = visitor;
            visit.checker = checker;
            visit.name = "scan_parallel";
            visit.count = -1;
            visit.all = all;
            statuses[part] = manycore_map_for_each_of(map_, part, visits.size(), Visit::scan_one, &visit);
        };
        for (size_t part = 1; part < parts; part++)
            threads.emplace_back(scan, part);
        scan(0);
        for (std::thread &thread : threads)
            thread.join();
        for (size_t part = 0; part < parts; part++) {
            visits[part].rethrow();
            if (!done(statuses[part]))
                return false;
            if (visits[part].is_stopped)
                return checker_failed();
        }
        if (!check_progress(checker, "scan_parallel", "ending", -1, all))
            return false;
        trigger(MetaTrigger::ITERATE, "scan_parallel");
        return true;
    }

    bool set(const char *kbuf, size_t ksiz, const char *vbuf, size_t vsiz) override
    {
        if (!may(true) || !done(manycore_map_set(map_, kbuf, ksiz, vbuf, vsiz)))
            return false;
        cap_.keep(map_, kbuf, ksiz);
        return true;
    }

    bool remove(const char *kbuf, size_t ksiz) override
    {
        return may(true) && done(manycore_map_remove(map_, kbuf, ksiz));
    }

    char *get(const char *kbuf, size_t ksiz, size_t *sp) override
    {
        Visit::Copy copy = {nullptr, 0};
        if (!may(false) || !done(manycore_map_get(map_, kbuf, ksiz, Visit::copy_value, &copy)))
            return nullptr;
        *sp = copy.size;
        return copy.data;
    }

    bool get(const std::string &key, std::string *value) override
    {
        return may(false) && done(manycore_map_get(map_, key.data(), key.size(), Visit::copy_string, value));
    }

    int32_t get(const char *kbuf, size_t ksiz, char *vbuf, size_t max) override
    {
        Visit::Copy copy = {vbuf, max};
        if (!may(false) || !done(manycore_map_get(map_, kbuf, ksiz, Visit::copy_part, &copy)))
            return -1;
        return int32_t(copy.size);
    }

    int32_t check(const char *kbuf, size_t ksiz) override
    {
        size_t size = 0;
        if (!may(false) || !done(manycore_map_get(map_, kbuf, ksiz, Visit::take_size, &size)))
            return -1;
        return int32_t(size);
    }

    Error error() const override
    {
        return error_;
    }

    void set_error(const char *file, int32_t line, const char *func, Error::Code code, const char *message) override
    {
        error_->set(code, message);
        if (!logger_)
            return;
        Logger::Kind kind = code == Error::BROKEN || code == Error::SYSTEM ? Logger::ERROR : Logger::INFO;
        if (kind & logkinds_)
            logger_->log(file, line, func, kind, kc::strprintf("%d: %s: %s", code, Error::codename(code), message).c_str());
    }

    /* The path is a name only: nothing is read or written. */
    bool open(const std::string &path, uint32_t mode = OWRITER | OCREATE) override
    {
        if (omode_ != 0) {
            set_error(_KCCODELINE_, Error::INVALID, "already opened");
            return false;
        }
        manycore_map_config_t config = {sizeof(config), records_, log_bytes_};
        manycore_status_t status = manycore_map_create(&config, &map_);
        if (status != MANYCORE_OK) {
            set_error(_KCCODELINE_, Error::INVALID, manycore_strerror(status));
            return false;
        }
        path_ = path;
        std::memset(opaque_, 0, sizeof(opaque_));
        cap_.restart();
        omode_ = mode;
        trigger(MetaTrigger::OPEN, "open");
        return true;
    }

    /* All records are gone. No other thread uses the database meanwhile, and none is in a
       transaction. */
    bool close() override
    {
        if (!may(false))
            return false;
        manycore_map_abort(map_); /* if this thread is in a transaction */
        if (manycore_map_destroy(map_) != MANYCORE_OK) {
            set_error(_KCCODELINE_, Error::LOGIC, "another thread is in a transaction");
            return false;
        }
        map_ = nullptr;
        omode_ = 0;
        generation_++;
        path_.clear();
        trigger(MetaTrigger::CLOSE, "close");
        return true;
    }

    bool synchronize(bool hard = false, FileProcessor *proc = nullptr, ProgressChecker *checker = nullptr) override
    {
        (void)hard; /* there is no file */
        if (!may(false))
            return false;
        if ((omode_ & OWRITER) && !check_progress(checker, "synchronize", "nothing to be synchronized", -1, -1))
            return false;
        if (proc && !check_progress(checker, "synchronize", "running the post processor", -1, -1))
            return false;
        bool is_done = process(proc, "postprocessing failed");
        trigger(MetaTrigger::SYNCHRONIZE, "synchronize");
        return is_done;
    }

    /* Writers are kept out meanwhile, not readers. */
    bool occupy(bool writable = true, FileProcessor *proc = nullptr) override
    {
        (void)writable;
        if (!may(false))
            return false;
        bool is_done = process(proc, "processing failed");
        trigger(MetaTrigger::OCCUPY, "occupy");
        return is_done;
    }

    bool begin_transaction(bool hard = false) override
    {
        (void)hard;
        if (!may(true))
            return false;
        if (manycore_map_begin(map_) != MANYCORE_OK) {
            set_error(_KCCODELINE_, Error::LOGIC, "the thread is in a transaction already");
            return false;
        }
        trigger(MetaTrigger::BEGINTRAN, "begin_transaction");
        return true;
    }

    bool begin_transaction_try(bool hard = false) override
    {
        (void)hard;
        if (!may(true))
            return false;
        if (manycore_map_try_begin(map_) != MANYCORE_OK) {
            set_error(_KCCODELINE_, Error::LOGIC, "competition avoided");
            return false;
        }
        trigger(MetaTrigger::BEGINTRAN, "begin_transaction_try");
        return true;
    }

    bool end_transaction(bool commit = true) override
    {
        if (!may(false))
            return false;
        manycore_status_t status = commit ? manycore_map_commit(map_) : manycore_map_abort(map_);
        if (status == MANYCORE_NO_SESSION) {
            set_error(_KCCODELINE_, Error::INVALID, "not in transaction");
            return false;
        }
        if (status != MANYCORE_OK || !commit)
            generation_++; /* as with other classes, cursors are nowhere after that */
        trigger(status == MANYCORE_OK && commit ? MetaTrigger::COMMITTRAN : MetaTrigger::ABORTTRAN, "end_transaction");
        return done(status);
    }

    bool clear() override
    {
        if (!may(true) || !done(manycore_map_clear(map_)))
            return false;
        generation_++;
        std::memset(opaque_, 0, sizeof(opaque_));
        trigger(MetaTrigger::CLEAR, "clear");
        return true;
    }

    int64_t count() override
    {
        return may(false) ? int64_t(manycore_map_count(map_)) : -1;
    }

    /* Bytes of keys and values. */
    int64_t size() override
    {
        return may(false) ? int64_t(manycore_map_bytes(map_)) : -1;
    }

    std::string path() override
    {
        return may(false) ? path_ : std::string();
    }

    bool status(std::map<std::string, std::string> *strmap) override
    {
        if (!may(false))
            return false;
        (*strmap)["type"] = kc::strprintf("%u", unsigned(TYPEVOID));
        (*strmap)["realtype"] = kc::strprintf("%u", unsigned(TYPEVOID));
        (*strmap)["path"] = path_;
        if (strmap->count("opaque") > 0)
            (*strmap)["opaque"] = std::string(opaque_, sizeof(opaque_));
        (*strmap)["count"] = kc::strprintf("%lld", (long long)count());
        (*strmap)["size"] = kc::strprintf("%lld", (long long)size());
        return true;
    }

    Cursor *cursor() override
    {
        return new Cursor(this);
    }

    void log(const char *file, int32_t line, const char *func, Logger::Kind kind, const char *message) override
    {
        if (logger_)
            logger_->log(file, line, func, kind, message);
    }

    bool tune_logger(Logger *logger, uint32_t kinds = Logger::WARN | Logger::ERROR) override
    {
        if (!is_closed())
            return false;
        logger_ = logger;
        logkinds_ = kinds;
        return true;
    }

    bool tune_meta_trigger(MetaTrigger *trigger) override
    {
        if (!is_closed())
            return false;
        mtrigger_ = trigger;
        return true;
    }

    /* Room for this many records before the table has to grow. */
    bool tune_records(int64_t records)
    {
        if (!is_closed())
            return false;
        records_ = records > 0 ? size_t(records) : 0;
        return true;
    }

    /* How much a transaction may change, and what other threads may write while a long iteration
       goes on, each. 64 MiB. */
    bool tune_log(int64_t bytes)
    {
        if (!is_closed())
            return false;
        log_bytes_ = bytes > 0 ? size_t(bytes) : 0;
        return true;
    }

    /* At most this many records, and bytes of keys and values: others go when one is written. They
       go round and round in the map's order, not those first that were used least lately. */
    bool cap_count(int64_t records)
    {
        if (!is_closed())
            return false;
        cap_.set_count(records);
        return true;
    }

    bool cap_size(int64_t bytes)
    {
        if (!is_closed())
            return false;
        cap_.set_size(bytes);
        return true;
    }

    /* 16 bytes of the program's own. */
    char *opaque()
    {
        return may(false) ? opaque_ : nullptr;
    }

    bool synchronize_opaque()
    {
        return may(true);
    }

private:
    friend class MvrluCursor<MvrluDB>;
    typedef MvrluVisit Visit;
    typedef MvrluScopedVisitor ScopedVisitor;
    typedef MvrluAlone Alone;

    MvrluDB(const MvrluDB &) = delete;
    MvrluDB &operator=(const MvrluDB &) = delete;

    bool is_closed()
    {
        if (omode_ == 0)
            return true;
        set_error(_KCCODELINE_, Error::INVALID, "already opened");
        return false;
    }

    bool may(bool write)
    {
        if (omode_ == 0) {
            set_error(_KCCODELINE_, Error::INVALID, "not opened");
            return false;
        }
        if (write && !(omode_ & OWRITER)) {
            set_error(_KCCODELINE_, Error::NOPERM, "permission denied");
            return false;
        }
        return true;
    }

    bool deny()
    {
        set_error(_KCCODELINE_, Error::NOPERM, "permission denied");
        return false;
    }

    bool done(manycore_status_t status)
    {
        switch (status) {
        case MANYCORE_OK:
            return true;
        case MANYCORE_NOT_FOUND:
            set_error(_KCCODELINE_, Error::NOREC, "no record");
            return false;
        case MANYCORE_INVALID:
            set_error(_KCCODELINE_, Error::INVALID, "a key or a value is too long");
            return false;
        default: /* a transaction that is too large, or a call in a visitor of the same database */
            set_error(_KCCODELINE_, Error::LOGIC, manycore_strerror(status));
            return false;
        }
    }

    bool checker_failed()
    {
        set_error(_KCCODELINE_, Error::LOGIC, "checker failed");
        return false;
    }

    bool check_progress(ProgressChecker *checker, const char *name, const char *message, int64_t now, int64_t all)
    {
        return !checker || checker->check(name, message, now, all) || checker_failed();
    }

    bool process(FileProcessor *proc, const char *failure)
    {
        if (!proc)
            return true;
        Alone alone(map_);
        if (proc->process(path_, count(), size()))
            return true;
        set_error(_KCCODELINE_, Error::LOGIC, failure);
        return false;
    }

    void trigger(MetaTrigger::Kind kind, const char *message)
    {
        if (mtrigger_)
            mtrigger_->trigger(kind, message);
    }

    /* From each record to the next, since those may change that the visitor sees. */
    bool iterate_alone(Visit &visit)
    {
        Alone alone(map_);
        std::string key;
        int from = MANYCORE_MAP_FIRST;
        for (;;) {
            std::string next;
            manycore_status_t status = manycore_map_next(map_, from, key.data(), key.size(), Visit::take_key, &next);
            if (status == MANYCORE_NOT_FOUND)
                return true;
            if (!done(status))
                return false;
            key.swap(next);
            visit.key = key.data();
            visit.key_size = key.size();
            status = manycore_map_change(map_, key.data(), key.size(), Visit::decide, &visit);
            if (!visit.thrown && !done(status))
                return false;
            visit.count++;
            if (visit.thrown || (visit.checker && !visit.checker->check(visit.name, "processing", visit.count, visit.all))) {
                visit.is_stopped = true;
                return true;
            }
            from = MANYCORE_MAP_AFTER;
        }
    }

    manycore_map_t *map_ = nullptr;
    kc::TSD<Error> error_;
    Logger *logger_ = nullptr;
    uint32_t logkinds_ = 0;
    MetaTrigger *mtrigger_ = nullptr;
    uint32_t omode_ = 0;
    size_t records_ = 0, log_bytes_ = 0;
    MvrluCap cap_;
    std::string path_;
    char opaque_[16];
    /* Of cursors: those that were set before the last end of all records are nowhere. */
    std::atomic<uint64_t> generation_{0};
    std::mutex cursors_lock_;
    std::list<Cursor *> cursors_;
};

} // namespace manycore

#endif
