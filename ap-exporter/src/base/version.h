#ifndef OAL_VERSION_H
#define OAL_VERSION_H

#define OAL_VERSION "0.2.0"

/* What this program is called, runs on and looks at, and where its files are. `make HOST=1`: the one for hosts. */
#ifdef OAL_HOST
#define OAL_PROGRAM "oal-host"
#define OAL_HERE "host"
#define OAL_CONFIG_PATH "/etc/oal-host/oal-host.conf"
#define OAL_STATUS_SOCKET "/run/oal-host/status.sock"
#define OAL_COLLECTS "'tcp'"
#else
#define OAL_PROGRAM "ap-exporter"
#define OAL_HERE "AP"
#define OAL_CONFIG_PATH "/etc/config/ap-exporter"
#define OAL_STATUS_SOCKET "/var/run/ap-exporter.sock"
#define OAL_COLLECTS "'nl80211', 'tap' or 'replay'"
#endif

#endif
