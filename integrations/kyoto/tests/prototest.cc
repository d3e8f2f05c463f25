/* Kyoto Cabinet's own test of its prototype databases, with MvrluDB for the one by a hash table. */
#include <kcprotodb.h>

#include "../mvrlu_db.h"

namespace kyotocabinet {
typedef manycore::MvrluDB MvrluDB;
}

#define ProtoHashDB MvrluDB
#include "kcprototest.cc"
