#ifndef OAL_VERSION_H
#define OAL_VERSION_H

#define OAL_VERSION "0.2.0"

#endif
