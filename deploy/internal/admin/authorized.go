package admin

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strings"

	"oal/deploy/internal/account"
	"oal/deploy/internal/limit"
	"oal/deploy/internal/store"
)

type userKey struct{}

// user is who asks; their role was checked.
func user(r *http.Request) account.User {
	u, _ := r.Context().Value(userKey{}).(account.User)
	return u
}

// recorder remembers what was answered, for the audit log.
type recorder struct {
	http.ResponseWriter
	code int
	why  string // of a no, or what somebody gave as their reason
}

func (r *recorder) WriteHeader(code int) {
	r.code = code
	r.ResponseWriter.WriteHeader(code)
}

// Unwrap is for http.ResponseController.
func (r *recorder) Unwrap() http.ResponseWriter { return r.ResponseWriter }

// as lets users of a role, or a greater one, ask. What has the name of an action is in the audit log, and so is every
// refusal.
func (a *Server) as(role account.Role, action string, handle http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		recorded := &recorder{w, http.StatusOK, ""}
		who, known := a.who(r)
		refused := true
		switch {
		case !known:
			if !a.stranger(recorded, r) {
				return
			}
		case !who.Role.May(role):
			a.Metrics.AdminRefused.WithLabelValues("role").Inc()
			failure(recorded, http.StatusForbidden,
				fmt.Sprintf("user %s is %s; this is for %s", who.Name, who.Role, role))
		default:
			refused = false
			handle(recorded, r.WithContext(context.WithValue(r.Context(), userKey{}, who)))
		}
		switch {
		case action != "":
			a.record(r, who, action, recorded)
		case refused:
			a.record(r, who, "see", recorded)
		}
	}
}

func (a *Server) who(r *http.Request) (account.User, bool) {
	token, given := bearer(r)
	if !given {
		return account.User{}, false
	}
	u := a.Users.Of(token)
	return u, u.Role != account.None
}

func bearer(r *http.Request) (token string, given bool) {
	return strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
}

// stranger refuses someone without a good token; false when that is one of too many to be written down.
func (a *Server) stranger(w *recorder, r *http.Request) bool {
	w.Header().Set("WWW-Authenticate", `Bearer realm="oal-deploy"`)
	if wait := a.guesses.Take(address(r)); wait > 0 {
		a.Metrics.AdminRefused.WithLabelValues("rate_limit").Inc()
		limit.RetryAfter(w, wait)
		failure(w, http.StatusTooManyRequests, "too many bad tokens from this address; come back later")
		return false
	}
	a.Metrics.AdminRefused.WithLabelValues("token").Inc()
	failure(w, http.StatusUnauthorized,
		"send `Authorization: Bearer TOKEN` with the token of a user: that of admin_token_file, or one of "+
			"admin_users_file")
	return true
}

// scraped lets in a request with the token of the metrics, or of a user.
func (a *Server) scraped(handler http.Handler) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		token, given := bearer(r)
		if a.Scraper == nil || given && a.Scraper.Is(token) {
			handler.ServeHTTP(w, r)
			return
		}
		a.as(account.Viewer, "", handler.ServeHTTP)(w, r)
	}
}

func address(r *http.Request) string {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return r.RemoteAddr
	}
	return host
}

// record writes a line of the audit log: into the store, and one of JSON to the service's log whatever becomes of that.
func (a *Server) record(r *http.Request, who account.User, action string, answer *recorder) {
	asked := r.Method + " " + r.URL.Path
	if policy := r.URL.Query().Get("policy"); policy != "" {
		asked += " of " + policy
	}
	line := store.Audit{TSUS: a.Now().UnixMicro(), User: who.Name, Role: who.Role.String(), Address: address(r),
		Action: action, Target: clip(asked, 300), Code: answer.code, Note: clip(answer.why, 300)}
	a.Audit.LogAttrs(context.Background(), slog.LevelInfo, "admin request",
		slog.String("user", line.User), slog.String("role", line.Role), slog.String("address", line.Address),
		slog.String("action", action), slog.String("target", line.Target),
		slog.Int("code", line.Code), slog.String("note", line.Note))
	if who.Role == account.None && a.strangers.Take("") > 0 {
		return // nobody without a token pushes others' lines out of the store
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), auditTimeout)
	defer cancel()
	if err := a.Store.LogAudit(ctx, line); err != nil {
		a.Metrics.AuditUnstored.Inc()
		a.Logger.Error("a line of the audit log is not in the store", "error", err)
	}
}

func clip(text string, n int) string {
	if len(text) > n {
		text = text[:n]
	}
	return strings.ToValidUTF8(text, "?")
}

func (a *Server) whoami(w http.ResponseWriter, r *http.Request) {
	reply(w, map[string]string{"user": user(r).Name, "role": user(r).Role.String()})
}
