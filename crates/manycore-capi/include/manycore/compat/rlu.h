/* For programs that include "rlu.h": the package manycore-rlu of pkg-config puts this directory on
   their path. */
#include <manycore/rlu.h>
