// Package account is who may ask the admin interface for what.
package account

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"fmt"
	"os"
	"slices"
	"strings"

	"oal/deploy/internal/config"
	"oal/deploy/internal/fresh"
	"oal/deploy/internal/release"
)

// Role is what a user may do. Viewer, operator and admin may each do what those before them may; an approver sees, and
// approves, which nobody else does.
type Role int

const (
	None     Role = iota
	Viewer        // sees fleet, rollouts, kills, who is revoked, history
	Operator      // turns the kill switch, aborts and expands rollouts, revokes; sees the audit log
	Admin         // makes tickets, restores, copies the state; approves in an emergency
	Approver      // approves rollouts
)

var roles = map[string]Role{"viewer": Viewer, "operator": Operator, "admin": Admin, "approver": Approver}

// RoleNames are for messages.
const RoleNames = "viewer, operator, admin or approver"

// ParseRole is None for what is no role.
func ParseRole(name string) Role { return roles[name] }

func (r Role) String() string {
	return [...]string{"", "viewer", "operator", "admin", "approver"}[r]
}

// May says whether it may do what takes a role.
func (r Role) May(what Role) bool {
	if r == Approver || what == Approver {
		return r == Approver && (what == Approver || what == Viewer)
	}
	return r >= what
}

// User is someone with a token.
type User struct {
	Name  string
	Role  Role
	token [sha256.Size]byte // its hash
}

// Users are all who may ask.
type Users struct{ file *fresh.File[[]User] }

// FromToken is the name of the user whose token is in a file of its own.
const FromToken = "admin"

// Open reads the file of one token, which is that of user admin, and a file of lines `NAME ROLE SHA256-HEX-OF-TOKEN`,
// which may be absent from the configuration. Both are read again when they change; failed is called if they cannot be.
func Open(tokenFile, usersFile string, failed func(error)) (*Users, error) {
	paths := []string{tokenFile}
	if usersFile != "" {
		paths = append(paths, usersFile)
	}
	file, err := fresh.New(func() ([]User, error) { return read(tokenFile, usersFile) }, failed, paths...)
	return &Users{file}, err
}

func read(tokenFile, usersFile string) ([]User, error) {
	token, err := config.Secret(tokenFile)
	if err != nil {
		return nil, fmt.Errorf("admin_token_file: %w", err)
	}
	users := []User{{FromToken, Admin, sha256.Sum256([]byte(token))}}
	if usersFile == "" {
		return users, nil
	}
	text, err := os.ReadFile(usersFile)
	if err != nil {
		return nil, fmt.Errorf("admin_users_file: %w", err)
	}
	names := map[string]bool{FromToken: true}
	for i, line := range strings.Split(string(text), "\n") {
		line, _, _ = strings.Cut(line, "#")
		words := strings.Fields(line)
		if len(words) == 0 {
			continue
		}
		if len(words) != 3 {
			return nil, fmt.Errorf("%s:%d: a line is `NAME ROLE SHA256-HEX-OF-TOKEN`; `oal-deploy user NAME ROLE` "+
				"makes one", usersFile, i+1)
		}
		u := User{Name: words[0], Role: roles[words[1]]}
		sum, err := hex.DecodeString(words[2])
		switch {
		case !release.Name.MatchString(u.Name) || names[u.Name]:
			return nil, fmt.Errorf("%s:%d: `%.80s` is no name of its own: letters, digits, dots, dashes and "+
				"underscores, once; %s has the token of admin_token_file", usersFile, i+1, u.Name, FromToken)
		case u.Role == None:
			return nil, fmt.Errorf("%s:%d: the role is %s", usersFile, i+1, RoleNames)
		case err != nil || len(sum) != sha256.Size:
			return nil, fmt.Errorf("%s:%d: the third word is the SHA-256 of the token in 64 hexadecimal digits",
				usersFile, i+1)
		}
		names[u.Name] = true
		copy(u.token[:], sum)
		users = append(users, u)
	}
	return users, nil
}

// Of is the user of a token; a role of None: nobody. Every user is compared, in constant time.
func (u *Users) Of(token string) (found User) {
	given := sha256.Sum256([]byte(token))
	for _, user := range u.file.Get() {
		if subtle.ConstantTimeCompare(given[:], user.token[:]) == 1 {
			found = user
		}
	}
	return found
}

// Has says whether somebody has a role.
func (u *Users) Has(role Role) bool {
	return slices.ContainsFunc(u.file.Get(), func(user User) bool { return user.Role == role })
}

// Token is a file of one token that opens one thing, such as /metrics; it is read again when it changed.
type Token struct {
	file *fresh.File[[sha256.Size]byte]
}

// OpenToken reads it; the setting is what its path is called.
func OpenToken(setting, path string, failed func(error)) (*Token, error) {
	file, err := fresh.New(func() (sum [sha256.Size]byte, err error) {
		token, err := config.Secret(path)
		if err != nil {
			return sum, fmt.Errorf("%s: %w", setting, err)
		}
		return sha256.Sum256([]byte(token)), nil
	}, failed, path)
	return &Token{file}, err
}

// Is compares in constant time.
func (t *Token) Is(token string) bool {
	given, want := sha256.Sum256([]byte(token)), t.file.Get()
	return subtle.ConstantTimeCompare(given[:], want[:]) == 1
}
