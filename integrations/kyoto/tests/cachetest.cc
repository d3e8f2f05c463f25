/* Kyoto Cabinet's own test of CacheDB, with MvrluDB instead. What else CacheDB can be tuned by is
   taken, and left. */
#include <kccachedb.h>

#include "../mvrlu_db.h"

namespace kyotocabinet {

class TunedMvrluDB : public manycore::MvrluDB {
public:
    enum Flag { FOPEN = CacheDB::FOPEN, FFATAL = CacheDB::FFATAL };
    enum Option { TSMALL = CacheDB::TSMALL, TLINEAR = CacheDB::TLINEAR, TCOMPRESS = CacheDB::TCOMPRESS };

    bool tune_options(int8_t)
    {
        return true;
    }

    bool tune_buckets(int64_t buckets)
    {
        return tune_records(buckets);
    }

    bool switch_rotation(bool)
    {
        return true;
    }
};

} // namespace kyotocabinet

#define CacheDB TunedMvrluDB
#include "kccachetest.cc"
