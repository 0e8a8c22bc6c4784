/* ap.h: one access point of this process, whole: its data path, what it predicts, and its control. Live collection,
 * replay and ap-fleet all make their APs here. */
#ifndef OAL_AP_H
#define OAL_AP_H

#include <stddef.h>

#include "oal_policy.h"

struct agent;
struct ap;
struct controller;
struct destinations;
struct mark;
struct pipeline;
struct pipeline_config;
struct rwnd;

struct ap_config {
	struct agent *agent; /* brings its bundles; not started yet. NULL: nothing is predicted, nothing controlled */
	/* The most that control may do, with windows and with marks; both OAL_POLICY_MODE_OFF: there is none. */
	enum oal_policy_mode ceiling;
	const char *kill_file; /* as in controller_config */
	enum oal_policy_mode mark_ceiling;
	const char *mark_kill_file;
	/* The same of congestion controls, which only a host chooses. */
	enum oal_policy_mode congestion_ceiling;
	const char *congestion_kill_file;
};

/* `data_path` but for its consumer, which is the AP. Negative errno with the reason in `err`. */
int ap_new(struct ap **, const struct pipeline_config *data_path, const struct ap_config *, char *err, size_t err_size);
/* Gives every clamp up and emits what is open. After agent_stop(), before agent_free(). */
void ap_free(struct ap *);

/* Where rows and packets go. */
struct pipeline *ap_pipeline(const struct ap *);
/* NULL: there is no control. */
struct controller *ap_controller(const struct ap *);
/* What windows are set with from now on; NULL: nothing, control goes on in shadow. Not owned. */
void ap_rwnd(struct ap *, struct rwnd *);
/* The same of marks. */
void ap_mark(struct ap *, struct mark *);
/* Of a host. NULL: it has no policies about destinations. */
struct destinations *ap_destinations(const struct ap *);

#endif
