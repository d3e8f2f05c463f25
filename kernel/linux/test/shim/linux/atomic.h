#include <linux/shim.h>
